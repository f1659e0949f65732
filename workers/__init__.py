"""The Celery app: consumer hosts, operations, sampling; `spark/` holds the pipeline."""

from workers.app import app

__all__ = ["app"]
