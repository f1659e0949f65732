"""Running operations: claim the row, do the work in steps, end it."""
