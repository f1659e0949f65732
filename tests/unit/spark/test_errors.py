"""One line out of what Spark says."""

import pytest

from workers.spark.errors import essence

CONCURRENT = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Multiple queries use it. SQLSTATE: XXKST
=== Streaming Query ===
Identifier: lag"""

IN_PLANNING = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Failed: Traceback (most recent call last):
  File "a.py", line 1
cimpl.KafkaException: timed out

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in ask
    return x
queuecore.errors.ProviderUnavailable: Kafka is away; start it
 SQLSTATE: 38000
=== Streaming Query ==="""

IN_A_WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "b.py", line 2
queuecore.errors.CorruptLog: bad bytes"""


TOO_BUSY = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST
=== Streaming Query ==="""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no space left", "no space left"),
        ("", "Exception"),
        (CONCURRENT, "Multiple queries use it. SQLSTATE: XXKST"),
        (IN_PLANNING, "queuecore.errors.ProviderUnavailable: Kafka is away; start it"),
        (IN_A_WORKER, "queuecore.errors.CorruptLog: bad bytes"),
    ],
)
def test_the_essence_is_one_line(text: str, line: str) -> None:
    assert essence(Exception(text)) == line


class Silent(Exception):
    """As one of Py4J's whose JVM is gone."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_a_machine_that_has_too_much_to_do_is_told_of() -> None:
    assert essence(Exception(TOO_BUSY)).startswith("a Python process that Spark started was not ready within 10 s")


def test_an_error_that_cannot_be_told_any_more_is_told_nevertheless() -> None:
    assert essence(Silent()) == "Silent: Spark's Java process has ended"
