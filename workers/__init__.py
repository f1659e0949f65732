"""The Celery app and what it hosts: consumers, operations, sampling; `spark/` holds the pipeline."""
