"""What happens to a message whose handler failed."""

from queuecore.processing.retry import RetryFailed, RetryState

__all__ = ["RetryFailed", "RetryState"]
