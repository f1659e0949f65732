"""The whole configuration as one document: what it looks like, how it is read, and how it is written."""
