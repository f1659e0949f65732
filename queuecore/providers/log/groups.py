"""The groups' states and committed offsets, as rows that the members change in turn."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Final

from queuecore.errors import GroupActive, NotOwner
from queuecore.groups import GroupState, from_json, to_json
from queuecore.groups.epochs import check_newest
from queuecore.groups.members import displaced
from queuecore.groups.offsets import check_offsets
from queuecore.providers.base import Epochs, GroupDescription
from queuecore.providers.log.database import Database
from queuecore.topics import ProviderPartition

Offsets = Mapping[ProviderPartition, int]
NO_EPOCHS: Final[Epochs] = {}

# From name to name by the index: each group has as many rows as partitions, and a page wants few groups.
_COMMITTED_NAMES: Final = """
    with recursive known (name) as (
        select min(consumer_group) from committed where consumer_group > ?
        union all
        select (select min(consumer_group) from committed where consumer_group > known.name) from known
        where known.name is not null
    )
    select name from known where name is not null limit ?
"""
_MEMBERS: Final = """
    select name, state from member_group where name > ? and json_array_length(state, '$.members') > 0 order by name
"""


class Groups:
    """Safe from any thread of the process that opened it, and beside other processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def turn(self, group: str) -> Iterator[GroupState]:
        """The group's state, to be changed by nobody else meanwhile; saved at the end if it changed."""
        with self._database.writing() as db:
            state = _load(db, group)
            before = state.version
            yield state
            if state.version != before:
                row = (group, state.version, to_json(state))
                db.execute("insert or replace into member_group values (?, ?, ?)", row)

    def version(self, group: str) -> int:
        with self._database.reading() as db:
            return _version(db, group)

    def commit(
        self,
        group: str,
        member: str,
        seen_version: int,
        offsets: Offsets,
        epochs: Epochs,
        member_id: str | None = None,
    ) -> None:
        """NotOwner, with nothing committed, unless the member owns all of the partitions; StaleEpoch likewise where one
        was committed under a higher epoch."""
        with self._database.writing() as db:
            check_stored_epochs(db, group, epochs)
            check_owner(db, group, member, seen_version, offsets, member_id)
            store_offsets(db, group, offsets, epochs)

    def check_epochs(self, group: str, epochs: Epochs) -> None:
        """StaleEpoch where the group has committed one of these under a higher epoch."""
        if epochs:
            with self._database.reading() as db:
                check_stored_epochs(db, group, epochs)

    def alter_offsets(self, group: str, offsets: Offsets) -> None:
        with self._database.writing() as db:
            _refuse_active(_load(db, group), group, offsets)
            store_offsets(db, group, offsets)

    def delete_offsets(self, group: str, partitions: Iterable[ProviderPartition]) -> None:
        places = list(partitions)
        with self._database.writing() as db:
            _refuse_active(_load(db, group), group, places)
            rows = [(group, *place) for place in places]
            db.executemany("delete from committed where consumer_group = ? and topic = ? and partition = ?", rows)

    def topic_changed(self, topic: str, partitions: int) -> None:
        """Let every group whose members read the topic divide what there is now."""
        with self._database.reading() as db:
            names = [name for (name,) in db.execute("select name from member_group")]
        for name in names:
            with self.turn(name) as state:
                state.topics_changed({topic: partitions})

    def describe(self, behind: str = "", limit: int | None = None) -> dict[str, GroupDescription]:
        """Every group that has members or committed offsets; in their order those behind this one, and of them so many
        at most."""
        with self._database.reading() as db:
            # The first of all are among the first of each.
            joined = dict(islice(_with_members(db, behind), limit))
            committed = db.execute(_COMMITTED_NAMES, (behind, -1 if limit is None else limit)).fetchall()
        names = sorted({*joined, *(name for (name,) in committed)})[:limit]
        return {name: joined.get(name) or GroupDescription(name, {}) for name in names}


def check_owner(
    db: sqlite3.Connection,
    group: str,
    member: str,
    seen_version: int,
    partitions: Iterable[ProviderPartition],
    member_id: str | None = None,
) -> None:
    """NotOwner unless the member owns these now. One that saw the version there is has seen right."""
    if _version(db, group) == seen_version:
        return
    places, state = list(partitions), _load(db, group)
    if state.is_displaced(member, member_id):
        raise displaced(group, member_id)
    if not state.is_owner(member, places):
        names = ", ".join(map(str, places))
        raise NotOwner(
            f"group {group} has given {names} to another consumer, which gets the records again", group=group
        )


def check_stored_epochs(db: sqlite3.Connection, group: str, epochs: Epochs) -> None:
    """StaleEpoch where the group has committed one of these under a higher epoch."""
    for place, epoch in epochs.items():
        key = (group, *place)
        where = "consumer_group = ? and topic = ? and partition = ?"
        row = db.execute(f"select epoch from committed where {where}", key).fetchone()  # noqa: S608
        if row is not None and row[0] is not None:
            check_newest(group, {place: epoch}, {place: row[0]})


def store_offsets(db: sqlite3.Connection, group: str, offsets: Offsets, epochs: Epochs = NO_EPOCHS) -> None:
    """What has no epoch here keeps the one that is stored."""
    check_offsets(offsets)
    rows = [(group, *place, offset, epochs.get(place)) for place, offset in offsets.items()]
    db.executemany(
        "insert into committed (consumer_group, topic, partition, position, epoch) values (?, ?, ?, ?, ?) "
        "on conflict do update set position = excluded.position, epoch = coalesce(excluded.epoch, epoch)",
        rows,
    )


def _version(db: sqlite3.Connection, group: str) -> int:
    row = db.execute("select version from member_group where name = ?", (group,)).fetchone()
    return row[0] if row else 0


def _with_members(db: sqlite3.Connection, behind: str) -> Iterator[tuple[str, GroupDescription]]:
    """In their order, read as far as they are wanted. Most rows may be of groups that nobody is left of."""
    for name, text in db.execute(_MEMBERS, (behind,)):
        yield name, from_json(text).describe(name)


def _load(db: sqlite3.Connection, group: str) -> GroupState:
    row = db.execute("select state from member_group where name = ?", (group,)).fetchone()
    return from_json(row[0]) if row else GroupState()


def _refuse_active(state: GroupState, group: str, partitions: Iterable[ProviderPartition]) -> None:
    for place in partitions:
        if (owner := state.owners.get(place)) is not None:
            raise GroupActive(
                f"group {group} reads {place} right now (member {owner}); stop its consumers, then try again",
                group=group,
            )
