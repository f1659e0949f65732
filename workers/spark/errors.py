"""What can go wrong with Spark, told apart by what the operator can do about it.

QueueError
└── SparkError
    ├── SparkUnavailable   Spark cannot start on this machine, or its cluster has no worker: install Java, look at the
    │                      settings, or start workers
    ├── PipelineBusy       another process runs the pipeline; there is nothing to do (retryable)
    └── PipelineFailed     a run ended early; nothing of its batch was stored and the next run repeats it (retryable)
"""

from typing import Final

from queuecore.errors import QueueError

# Spark waits ten seconds for a Python process that it starts, and cannot be told to wait longer.
_NO_WORKER: Final = "Python worker failed to connect back"
_NO_WORKER_TOLD: Final = (
    "a Python process that Spark started was not ready within 10 s: this machine has too much to do, or too little "
    "memory; the next run tries again"
)


class SparkError(QueueError):
    code = "spark_error"


class SparkUnavailable(SparkError):
    code = "spark_unavailable"


class PipelineBusy(SparkError):
    code = "pipeline_busy"
    retryable = True


class PipelineFailed(SparkError):
    code = "pipeline_failed"
    retryable = True


def essence(error: BaseException) -> str:
    """What happened, in one line. Spark wraps it into its own message and the stacks of other processes."""
    _, _, text = _text(error).rpartition("terminated with exception: ")
    if _NO_WORKER in text:
        return _NO_WORKER_TOLD
    _, is_python, trace = text.rpartition("Traceback (most recent call last):")
    lines = [line.rstrip() for line in trace.splitlines() if line.strip()]
    if is_python:
        lines = [line for line in lines if not line[0].isspace()]
    return lines[0] if lines else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # Py4J asks the JVM for the text, and raises whatever comes of that
        return f"{type(error).__name__}: Spark's Java process has ended"
