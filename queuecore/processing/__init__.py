"""What happens to messages whose handler failed or overran its time."""

from queuecore.processing.strategies import ProcessingStrategy, ProcessingStrategyType, Verdict, processing_strategy

__all__ = [
    "ProcessingStrategy",
    "ProcessingStrategyType",
    "Verdict",
    "processing_strategy",
]
