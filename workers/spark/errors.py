"""What can go wrong with Spark, told apart by what the operator can do about it.

QueueError
└── SparkError
    ├── SparkUnavailable   Spark cannot start on this machine: install Java, or look at the settings
    └── PipelineFailed     a run ended early; nothing of its batch was stored and the next run repeats it (retryable)
"""

from queuecore.errors import QueueError


class SparkError(QueueError):
    code = "spark_error"


class SparkUnavailable(SparkError):
    code = "spark_unavailable"


class PipelineFailed(SparkError):
    code = "pipeline_failed"
    retryable = True


def essence(error: BaseException) -> str:
    """What happened, in one line. Spark wraps it into its own message and the stacks of other processes."""
    _, _, text = str(error).rpartition("terminated with exception: ")
    _, is_python, trace = text.rpartition("Traceback (most recent call last):")
    lines = [line.rstrip() for line in trace.splitlines() if line.strip()]
    if is_python:
        lines = [line for line in lines if not line[0].isspace()]
    return lines[0] if lines else type(error).__name__
