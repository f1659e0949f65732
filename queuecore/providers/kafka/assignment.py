"""What the group has given to one of its members."""

from collections.abc import Callable, Iterable, Set
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from queuecore.errors import NotOwner
from queuecore.groups.epochs import Fence
from queuecore.providers.base import AssignmentListener
from queuecore.providers.kafka.connection import logger
from queuecore.providers.kafka.epochs import Kept, read_kept
from queuecore.providers.kafka.intake import Intake
from queuecore.providers.kafka.records import from_kafka, to_kafka
from queuecore.providers.options import OffsetReset
from queuecore.topics import ProviderPartition

Tell = Callable[[frozenset[ProviderPartition]], None]
Seek = Callable[[ProviderPartition, int], None]

# How long the brokers may take to say what was committed. What they did not say is asked again in the next poll.
_ASKING_S: Final = 2.0
_RESET: Final[dict[OffsetReset, int]] = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}


class Assignment:
    """Which partitions are held, and how far each is read. For the consumer's thread.

    Partitions are given and taken in callbacks the library runs inside `Consumer.poll` and `consume`. With an
    incremental strategy they name what changes, otherwise all there is. What the group gives and nobody here wants
    is never handed to the library, so it is not read.

    What is wanted changes between the callbacks as well, and `follow` brings what is held in step. It never takes
    anything from the library: while that waits for a callback to be answered, it would take this for the answer. What
    is given up is put aside, paused; taken up again, it goes on at what is committed.

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
        reset: OffsetReset = "earliest",
    ) -> None:
        self.held: set[ProviderPartition] = set()
        self.paused: set[ProviderPartition] = set()
        # The offset after the last record given out, of those that gave any since they were held or sought.
        self.positions: dict[ProviderPartition, int] = {}
        # Where those begin that are just given: as the group says, unless the listener seeks.
        self.starts: dict[ProviderPartition, int] = {}
        self.listener = listener
        self.fence = Fence(group)
        # Whether `follow` has something to do.
        self.is_behind = False
        # Whether the listener is being told just now by the library.
        self.is_telling = False
        # What the listener raised meanwhile.
        self._trouble: BaseException | None = None
        self._group = group
        self._wanted = None if wanted is None else frozenset(wanted)
        self._intake = intake
        self._incremental = incremental
        self._reset = _RESET[reset]
        # All that the group gave; and of that, what the library has: held, or put aside.
        self._given: set[ProviderPartition] = set()
        self._loaded: set[ProviderPartition] = set()

    @property
    def wanted(self) -> frozenset[ProviderPartition] | None:
        return self._wanted

    @property
    def aside(self) -> Set[ProviderPartition]:
        """What the library has, and nobody is to get."""
        return self._loaded - self.held if len(self._loaded) != len(self.held) else frozenset()

    @property
    def needs_loading(self) -> bool:
        """Whether something is wanted that the library was not given, and an incremental strategy could give it."""
        return bool(self._missing() - self._loaded)

    def is_given(self, topic: str) -> bool:
        """Whether the group has given any of it to us."""
        return any(place.topic == topic for place in self._given)

    def want(self, wanted: Set[ProviderPartition] | None, listener: AssignmentListener | None) -> None:
        """From the next `follow` on."""
        self._wanted = None if wanted is None else frozenset(wanted)
        self.listener = listener
        self.is_behind = True

    def require(self, places: Iterable[ProviderPartition]) -> None:
        """NotOwner unless all of them are held."""
        for place in places:
            if place not in self.held:
                raise not_owner(self._group, place)

    def assigned(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        self._given |= set(map(from_kafka, partitions))
        given = self._missing() & set(map(from_kafka, partitions))
        # What cannot be asked for now is not read: it is put aside until it could be.
        kept = self._ask(client, given) if self.fence.wants(given) else {}
        doubtful = {place for place in given if kept is None and self.fence.wants([place])}
        ready = self._without_stale(given - doubtful, kept or {})
        # Told before the library may read: where the listener seeks, nothing else has been fetched.
        starts = self._begin(dict.fromkeys(ready, OFFSET_INVALID), in_library=True) | dict.fromkeys(
            doubtful, OFFSET_INVALID
        )
        assign = client.incremental_assign if self._incremental else client.assign
        assign([to_kafka(place, offset) for place, offset in starts.items()])
        self._loaded |= starts.keys()
        self.is_behind = self.is_behind or bool(doubtful)
        paused = (self.paused & ready) | doubtful
        if paused:
            client.pause([to_kafka(place) for place in paused])
        # The library has a partition that was paused when it was taken away paused when it is back.
        client.resume([to_kafka(place) for place in starts.keys() - paused])

    def revoked(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(client, partitions, None if self.listener is None else self.listener.revoked)

    def lost(self, client: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(client, partitions, None if self.listener is None else self.listener.lost)

    def lose_everything(self) -> None:
        """Another has this member's place, which the library does not tell in a callback."""
        self.tell_lost(frozenset(self.held))
        self._forget(set(self.held))
        self._given.clear()
        self._loaded.clear()

    def tell_lost(self, places: frozenset[ProviderPartition]) -> None:
        self._tell(None if self.listener is None else self.listener.lost, places)

    def put_aside(self, client: Consumer) -> None:
        """Give up what is wanted no longer, or under another epoch. Outside the library's callbacks."""
        unwanted = {place for place in self.held if not self._wants(place)} | self.fence.outdated(self.held)
        if unwanted:
            tell = None if self.listener is None else self.listener.revoked
            self._tell(tell, frozenset(unwanted), in_library=False)
            self._forget(unwanted)
            client.pause([to_kafka(place) for place in unwanted & self._loaded])

    def take_up(self, client: Consumer, seek: Seek) -> None:
        """Have what is wanted, and the group gave before. Likewise outside. `is_behind` says whether it is done."""
        missing = self._missing()
        kept = self._ask(client, missing) if missing else {}
        if kept is None:
            return
        places = self._without_stale(missing, kept)
        self.is_behind = places != missing
        fresh = places - self._loaded
        starts = {place: self._start_of(kept[place]) for place in places - fresh}
        starts = self._begin(starts | dict.fromkeys(fresh, OFFSET_INVALID), in_library=False)
        if fresh:
            client.incremental_assign([to_kafka(place, starts[place]) for place in fresh])
            self._loaded |= fresh
        for place in places - fresh:
            seek(place, starts[place])
        client.pause([to_kafka(place) for place in fresh & self.paused])
        client.resume([to_kafka(place) for place in places - self.paused])

    def raise_trouble(self) -> None:
        """What the listener raised first since the last time."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    def _wants(self, place: ProviderPartition) -> bool:
        return self._wanted is None or place in self._wanted

    def _missing(self) -> set[ProviderPartition]:
        return {place for place in self._given - self.held if self._wants(place)}

    def _ask(self, client: Consumer, places: Set[ProviderPartition]) -> dict[ProviderPartition, Kept] | None:
        """What the group has committed by now, when it has given these to us; None where nobody could say."""
        try:
            return read_kept(client, places, _ASKING_S)
        except KafkaException as error:
            logger.debug("group %s: what it has committed cannot be asked for: %s", self._group, error)
            return None

    def _without_stale(
        self, places: Set[ProviderPartition], kept: dict[ProviderPartition, Kept]
    ) -> set[ProviderPartition]:
        """These, but for what the group has committed under a higher epoch: that is wanted no longer."""
        newest = {place: one.epoch for place, one in kept.items() if one.epoch is not None}
        if (stale := self.fence.refuse_stale(places, newest)) and self._wanted is not None:
            self._wanted -= stale
            self.is_behind = True
        return set(places - stale)

    def _start_of(self, kept: Kept) -> int:
        return self._reset if kept.offset is None else kept.offset

    def _begin(self, starts: dict[ProviderPartition, int], *, in_library: bool) -> dict[ProviderPartition, int]:
        """Hold these, and tell; where each begins, as the listener may have chosen."""
        self.held |= starts.keys()
        self.fence.hold(starts)
        self.starts = starts
        tell = None if self.listener is None else self.listener.assigned
        self._tell(tell, frozenset(starts), in_library=in_library)
        chosen, self.starts = self.starts, {}
        return chosen

    def _give_up(self, client: Consumer, partitions: list[TopicPartition], tell: Tell | None) -> None:
        """What is not committed by the end of this is the next owner's to deliver again."""
        places = frozenset(map(from_kafka, partitions))
        taken, loaded = self.held & places, self._loaded & places
        self._tell(tell, frozenset(taken))
        self._forget(taken)
        self._given -= places
        self._loaded -= places
        if self._incremental:
            client.incremental_unassign([to_kafka(place) for place in loaded])
        else:
            client.unassign()

    def _tell(self, tell: Tell | None, places: frozenset[ProviderPartition], *, in_library: bool = True) -> None:
        if tell is None or not places:
            return
        self.is_telling = in_library
        try:
            tell(places)
        except BaseException as error:
            self._trouble = self._trouble or error
        finally:
            self.is_telling = False

    def _forget(self, places: set[ProviderPartition]) -> None:
        self.held -= places
        self.paused -= places
        self.fence.release(places)
        self._intake.drop(places)
        for place in places:
            self.positions.pop(place, None)


def not_owner(group: str, place: ProviderPartition) -> NotOwner:
    return NotOwner(f"group {group} does not hold {place} here; another consumer will get its records", group=group)
