"""What happens to messages whose handler failed or overran its time."""

from queuecore.processing.retry import RetryFailed, RetryState
from queuecore.processing.strategies import ProcessingStrategy, ProcessingStrategyType, Verdict, processing_strategy

__all__ = [
    "ProcessingStrategy",
    "ProcessingStrategyType",
    "RetryFailed",
    "RetryState",
    "Verdict",
    "processing_strategy",
]
