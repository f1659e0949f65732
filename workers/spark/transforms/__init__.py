"""What the summaries are, as functions from frames to frames: no clock, no database, no state."""
