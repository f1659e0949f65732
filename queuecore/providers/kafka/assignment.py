"""What the group has given to one of its members."""

from collections.abc import Callable, Iterable, Set

from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from queuecore.errors import NotOwner
from queuecore.providers.base import AssignmentListener
from queuecore.providers.kafka.intake import Intake
from queuecore.providers.kafka.records import from_kafka, to_kafka
from queuecore.topics import ProviderPartition

Tell = Callable[[frozenset[ProviderPartition]], None]


class Assignment:
    """Which partitions are held, and how far each is read. For the consumer's thread.

    Partitions are given and taken in callbacks the library runs inside `Consumer.poll` and `consume`. With an
    incremental strategy they name what changes, otherwise all there is. What the group gives and nobody here wants
    is never handed to the library, so it is not read.

    What the listener raises is kept for `raise_trouble`. Raised through `consume`, it would cost the records that this
    has collected: the library has gone past them.
    """

    def __init__(
        self,
        group: str,
        wanted: Set[ProviderPartition] | None,
        intake: Intake,
        listener: AssignmentListener | None,
        *,
        incremental: bool,
    ) -> None:
        self.held: set[ProviderPartition] = set()
        self.paused: set[ProviderPartition] = set()
        # The offset after the last record given out, of those that gave any since they were held or sought.
        self.positions: dict[ProviderPartition, int] = {}
        # Where those begin that are just given: as the group says, unless the listener seeks.
        self.starts: dict[ProviderPartition, int] = {}
        self.listener = listener
        # Whether the listener is being told just now.
        self.is_telling = False
        # What the listener raised meanwhile.
        self._trouble: BaseException | None = None
        self._group = group
        self._wanted = wanted
        self._intake = intake
        self._incremental = incremental

    def require(self, places: Iterable[ProviderPartition]) -> None:
        """NotOwner unless all of them are held."""
        for place in places:
            if place not in self.held:
                raise not_owner(self._group, place)

    def assigned(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        given = frozenset(map(from_kafka, partitions))
        if self._wanted is not None:
            given &= self._wanted
        self.held |= given
        # Told before the library may read: where the listener seeks, nothing else has been fetched.
        self.starts = dict.fromkeys(given, OFFSET_INVALID)
        self._tell(None if self.listener is None else self.listener.assigned, given)
        starts, self.starts = self.starts, {}
        assign = client.incremental_assign if self._incremental else client.assign
        assign([to_kafka(place, offset) for place, offset in starts.items()])
        if paused := self.paused & given:
            client.pause([to_kafka(place) for place in paused])

    def revoked(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(client, partitions, None if self.listener is None else self.listener.revoked)

    def lost(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(client, partitions, None if self.listener is None else self.listener.lost)

    def lose_everything(self) -> None:
        """Another has this member's place, which the library does not tell in a callback."""
        taken = set(self.held)
        self._tell(None if self.listener is None else self.listener.lost, frozenset(taken))
        self._forget(taken)

    def raise_trouble(self) -> None:
        """What the listener raised first since the last time."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    def _give_up(self, client: Consumer, partitions: list[TopicPartition], tell: Tell | None) -> None:
        """What is not committed by the end of this is the next owner's to deliver again."""
        taken = self.held & frozenset(map(from_kafka, partitions))
        self._tell(tell, frozenset(taken))
        self._forget(taken)
        if self._incremental:
            client.incremental_unassign([to_kafka(place) for place in taken])
        else:
            client.unassign()

    def _tell(self, tell: Tell | None, places: frozenset[ProviderPartition]) -> None:
        if tell is None or not places:
            return
        self.is_telling = True
        try:
            tell(places)
        except BaseException as error:
            self._trouble = self._trouble or error
        finally:
            self.is_telling = False

    def _forget(self, places: set[ProviderPartition]) -> None:
        self.held -= places
        self.paused -= places
        self._intake.drop(places)
        for place in places:
            self.positions.pop(place, None)


def not_owner(group: str, place: ProviderPartition) -> NotOwner:
    return NotOwner(f"group {group} does not hold {place} here; another consumer will get its records", group=group)
