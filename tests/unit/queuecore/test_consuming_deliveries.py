"""How often each of three messages is delivered when the first fails, or times out, once: no message is left out.

Three messages of one originator, in one pack, with a batch size of 2 and 3 retries.
"""

import threading
from collections import Counter
from contextlib import closing
from typing import Literal

import pytest

from queuecore.consuming.consumption import Consumption
from queuecore.consuming.context import DeliveryContext
from queuecore.consuming.plan import ConsumptionPlan
from queuecore.deadletter.envelope import read_story
from queuecore.messages import QueueMessage, Record
from queuecore.processing import processing_strategy
from queuecore.providers.base import TopicSpec
from queuecore.providers.memory import MemoryProvider
from queuecore.sending import send_and_wait
from queuecore.submit import submit_strategy
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import TopicPartitionInfo, dead_letter_partition

Trouble = Literal["fails", "times out"]

INFO = TopicPartitionInfo("in", 0)
LETTERS = dead_letter_partition(INFO)
# Time enough for the others of the pack, where their handlers are to return in the attempt in which the first overruns.
TIMEOUT_MS, LONG_TIMEOUT_MS = 300, 2_000

SEQUENCES = ("SEQUENTIAL", "SEQUENTIAL_BY_ORIGINATOR", "SEQUENTIAL_BY_TENANT")
ONCE_EACH = {"BURST": (1, 1, 1), "BATCH": (1, 1, 1), **dict.fromkeys(SEQUENCES, (1, 1, 1))}
FIRST_AGAIN = {"BURST": (2, 1, 1), "BATCH": (2, 1, 1), **dict.fromkeys(SEQUENCES, (2, 1, 1))}
PACK_AGAIN = {"BURST": (2, 2, 2), "BATCH": (2, 2, 1), **dict.fromkeys(SEQUENCES, (2, 1, 1))}

TABLE = {
    ("SKIP_ALL_FAILURES", "fails"): ONCE_EACH,
    ("SKIP_ALL_FAILURES", "times out"): ONCE_EACH,
    ("SKIP_ALL_FAILURES_AND_TIMED_OUT", "fails"): ONCE_EACH,
    ("SKIP_ALL_FAILURES_AND_TIMED_OUT", "times out"): ONCE_EACH,
    ("RETRY_ALL", "fails"): PACK_AGAIN,
    ("RETRY_ALL", "times out"): PACK_AGAIN,
    ("RETRY_FAILED", "fails"): FIRST_AGAIN,
    ("RETRY_FAILED", "times out"): ONCE_EACH,
    ("RETRY_TIMED_OUT", "fails"): ONCE_EACH,
    ("RETRY_TIMED_OUT", "times out"): FIRST_AGAIN,
    ("RETRY_FAILED_AND_TIMED_OUT", "fails"): FIRST_AGAIN,
    ("RETRY_FAILED_AND_TIMED_OUT", "times out"): FIRST_AGAIN,
}


class Pack:
    """Three messages, consumed to the end."""

    def __init__(self, submit: str, processing: str, trouble: Trouble | None) -> None:
        self.provider = MemoryProvider()
        self.deliveries: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self._trouble = trouble
        plan = ConsumptionPlan(
            queue="in",
            group="g",
            infos=(INFO,),
            handler_name="failing",
            submit=submit_strategy(submit, batch_size=2),
            processing=processing_strategy(processing, retries=3, pause_ms=1),
            timeout_ms=self._timeout_ms(submit, processing),
        )
        self.consumption = Consumption(plan, self.provider, self.handle)

    def _timeout_ms(self, submit: str, processing: str) -> int | None:
        if self._trouble != "times out":
            return None
        return LONG_TIMEOUT_MS if TABLE[processing, "times out"][submit][1] == 2 else TIMEOUT_MS

    def handle(self, record: Record, context: DeliveryContext) -> None:
        with self._lock:
            self.deliveries[record.data] += 1
            is_in_trouble = record.data == b"first" and self.deliveries[record.data] == 1
        if is_in_trouble and self._trouble == "fails":
            raise ValueError("broken")
        if is_in_trouble and self._trouble == "times out":
            wait_until(lambda: self.consumption.counts.overruns)

    def consume(self) -> tuple[int, int, int]:
        """How often each was delivered."""
        admin = self.provider.admin()
        admin.create_topics([TopicSpec("in.0"), TopicSpec("in.dlq")])
        for data in (b"first", b"second", b"third"):
            send_and_wait(self.provider.producer(), INFO, QueueMessage(b"originator", data), DEADLINE_S)
        self.consumption.start()
        wait_until(lambda: admin.committed_offsets({"g": [INFO.place]})["g"].get(INFO.place) == 3)
        assert self.consumption.stop(DEADLINE_S)
        return self.deliveries[b"first"], self.deliveries[b"second"], self.deliveries[b"third"]

    def letters(self) -> dict[bytes, str]:
        """Why each of them was given up."""
        with closing(self.provider.reader()) as reader:
            return {one.data: read_story(one.headers).reason for one in reader.read(LETTERS.place, 0, 10)}


@pytest.mark.parametrize("submit", ["BURST", "BATCH", *SEQUENCES])
@pytest.mark.parametrize(("processing", "trouble"), list(TABLE), ids=[" ".join(cell) for cell in TABLE])
class TestTheFirstIsInTrouble:
    def test_deliveries(self, submit: str, processing: str, trouble: Trouble) -> None:
        pack = Pack(submit, processing, trouble)
        expected = TABLE[processing, trouble][submit]
        with closing(pack.provider):
            assert pack.consume() == expected
            # Given up where it was delivered once: then it is a letter, and it alone.
            reason = "failed" if trouble == "fails" else "timed_out"
            assert pack.letters() == ({b"first": reason} if expected[0] == 1 else {})


@pytest.mark.parametrize("submit", ["BURST", "BATCH", *SEQUENCES])
@pytest.mark.parametrize("processing", sorted({processing for processing, _ in TABLE}))
def test_where_all_is_well_each_is_delivered_once(submit: str, processing: str) -> None:
    pack = Pack(submit, processing, None)
    with closing(pack.provider):
        assert pack.consume() == (1, 1, 1)
        assert pack.letters() == {}
