"""Reads that pages and reports are made of: a few queries each, however many rows there are. Nothing here writes."""
