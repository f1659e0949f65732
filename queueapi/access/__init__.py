"""Who may do what: the table, who somebody is by it, whose things they see, and how they are let in."""
