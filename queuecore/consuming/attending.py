"""What is read of a plan: all of it, but for the partitions that others have under a newer epoch."""

import threading
from collections.abc import Mapping

from queuecore.consuming.plan import ConsumptionPlan
from queuecore.errors import StaleEpoch
from queuecore.topics import ProviderPartition, TopicPartitionInfo


class Attending:
    """Safe from any thread."""

    def __init__(self, plan: ConsumptionPlan) -> None:
        self._lock = threading.Lock()
        self._plan = self._attended = plan
        # Of partitions that others have: the epoch under which they do.
        self._stale: dict[int, int] = {}
        self._infos = {info.place: info for info in plan.infos}

    @property
    def plan(self) -> ConsumptionPlan:
        return self._plan

    @property
    def attended(self) -> ConsumptionPlan:
        """The plan without what others have. The same one as long as nothing changes."""
        return self._attended

    @property
    def infos(self) -> Mapping[ProviderPartition, TopicPartitionInfo]:
        """Also of what was read before the plan changed, and is still being handled."""
        return self._infos

    @property
    def stale(self) -> dict[int, int]:
        return dict(self._stale)

    def change(self, plan: ConsumptionPlan) -> None:
        """A partition that others have is tried again once its epoch is not below theirs."""
        with self._lock:
            self._infos = self._infos | {info.place: info for info in plan.infos}
            self._stale = {
                number: newest for number, newest in self._stale.items() if plan.epochs.get(number, newest) < newest
            }
            self._plan = plan
            self._attended = plan.without(self._stale)

    def leave_alone(self, error: StaleEpoch) -> bool:
        """Another has the partition of this. Whether there is something else to go on with."""
        place, newest = error.fields["place"], error.fields["newest"]
        number = self._infos[place].partition or 0
        with self._lock:
            # The plan may have a new epoch by now.
            if self._plan.epochs.get(number, newest) < newest:
                self._stale = {**self._stale, number: newest}
                self._attended = self._plan.without(self._stale)
            return bool(self._attended.infos)
