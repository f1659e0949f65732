"""Messages given up on: how they look, and how they are put aside."""
