"""The pipeline: events from `queue.metrics` become the summaries that pages read. Only in here is PySpark imported."""
