"""In which order the messages of a pack are handed to handlers."""

from queuecore.submit.strategies import (
    Batch,
    Burst,
    Sequential,
    SequentialByOriginator,
    SequentialByTenant,
    SubmitStrategy,
    SubmitStrategyType,
    submit_strategy,
)

__all__ = [
    "Batch",
    "Burst",
    "Sequential",
    "SequentialByOriginator",
    "SequentialByTenant",
    "SubmitStrategy",
    "SubmitStrategyType",
    "submit_strategy",
]
