"""Which topics there are, and what groups have committed."""

import json
from collections.abc import Iterable

from queuecore.errors import ConfigurationError, UnknownTopic
from queuecore.providers.base import TopicSpec
from queuecore.providers.log.database import Database
from queuecore.topics import ProviderPartition

_COLUMNS = "name, partitions, retention_ms, retention_bytes, segment_bytes, cleanup"


class Catalog:
    """Safe from any thread of the process that opened it, and beside other processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_topics(self, specs: Iterable[TopicSpec]) -> None:
        with self._database.writing(durable=True) as db:
            db.executemany("insert or ignore into topic values (?, ?, ?, ?, ?, ?)", map(_row, specs))

    def alter_topics(self, specs: Iterable[TopicSpec]) -> None:
        with self._database.writing() as db:
            for spec in specs:
                (partitions,) = db.execute("select partitions from topic where name = ?", (spec.name,)).fetchone()
                if spec.partitions < partitions:
                    raise ConfigurationError(
                        f"topic {spec.name!r} has {partitions} partitions and cannot have {spec.partitions}: their "
                        "records would be lost. Create another topic"
                    )
                db.execute("insert or replace into topic values (?, ?, ?, ?, ?, ?)", _row(spec))

    def delete_topic(self, name: str) -> None:
        with self._database.writing(durable=True) as db:
            db.execute("delete from topic where name = ?", (name,))
            db.execute("delete from committed where topic = ?", (name,))
            db.execute("delete from compacted where topic = ?", (name,))

    def cap_offsets(self, place: ProviderPartition, end: int) -> None:
        """Let no group be beyond this offset."""
        with self._database.writing() as db:
            db.execute(
                "update committed set position = ? where topic = ? and partition = ? and position > ?",
                (end, *place, end),
            )

    def forget_offsets(self, name: str) -> None:
        with self._database.writing() as db:
            db.execute("delete from committed where topic = ?", (name,))

    def topics(self) -> dict[str, TopicSpec]:
        with self._database.reading() as db:
            rows = db.execute(f"select {_COLUMNS} from topic order by name").fetchall()  # noqa: S608
        return {row[0]: TopicSpec(*row) for row in rows}

    def topic_names(self, behind: str, limit: int | None) -> list[str]:
        """In their order, those behind this one, and of them so many at most."""
        statement = "select name from topic where name > ? order by name limit ?"
        with self._database.reading() as db:
            return [name for (name,) in db.execute(statement, (behind, -1 if limit is None else limit))]

    def topic(self, name: str) -> TopicSpec:
        with self._database.reading() as db:
            row = db.execute(f"select {_COLUMNS} from topic where name = ?", (name,)).fetchone()  # noqa: S608
        if row is None:
            raise _unknown(name)
        return TopicSpec(*row)

    def topics_named(self, names: Iterable[str]) -> dict[str, TopicSpec]:
        """These, asked for at once. UnknownTopic where one of them does not exist."""
        wanted = list(names)
        statement = f"select {_COLUMNS} from topic where name in (select value from json_each(?))"  # noqa: S608
        with self._database.reading() as db:
            found = {row[0]: TopicSpec(*row) for row in db.execute(statement, (json.dumps(wanted),))}
        for name in wanted:
            if name not in found:
                raise _unknown(name)
        return {name: found[name] for name in wanted}

    def topic_of(self, place: ProviderPartition) -> TopicSpec:
        """The topic, or UnknownTopic where it or this partition of it does not exist."""
        spec = self.topic(place.topic)
        if not 0 <= place.partition < spec.partitions:
            raise UnknownTopic(
                f"topic {spec.name!r} has partitions 0 to {spec.partitions - 1}; there is no {place.partition}",
                topic=spec.name,
            )
        return spec

    def partitions_of(self, name: str) -> list[ProviderPartition]:
        return [ProviderPartition(name, number) for number in range(self.topic(name).partitions)]

    def committed(self, group: str) -> dict[ProviderPartition, int]:
        with self._database.reading() as db:
            rows = db.execute(
                "select topic, partition, position from committed where consumer_group = ?", (group,)
            ).fetchall()
        return {ProviderPartition(topic, partition): position for topic, partition, position in rows}

    def epochs(self, group: str) -> dict[ProviderPartition, int]:
        """Of what the group has committed under one: the newest."""
        with self._database.reading() as db:
            rows = db.execute(
                "select topic, partition, epoch from committed where consumer_group = ? and epoch is not null", (group,)
            ).fetchall()
        return {ProviderPartition(topic, partition): epoch for topic, partition, epoch in rows}

    def compacted_to(self, place: ProviderPartition) -> int:
        """Segments below this offset hold each key once already."""
        with self._database.reading() as db:
            row = db.execute("select position from compacted where topic = ? and partition = ?", place).fetchone()
        return row[0] if row else 0

    def set_compacted_to(self, place: ProviderPartition, offset: int) -> None:
        with self._database.writing() as db:
            db.execute("insert or replace into compacted values (?, ?, ?)", (*place, offset))


def _unknown(name: str) -> UnknownTopic:
    return UnknownTopic(f"topic {name!r} does not exist; create it first", topic=name)


def _row(spec: TopicSpec) -> tuple[object, ...]:
    return (
        spec.name, spec.partitions, spec.retention_ms, spec.retention_bytes, spec.segment_bytes, spec.cleanup,
    )  # fmt: skip
