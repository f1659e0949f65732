"""Deleting topics, such that a death half-way leaves none that is half there.

The mark on a topic's pages is what decides. It comes first: nobody who has the topic open may write to it any more.
Then the catalog forgets it, then its folder gets a name that no topic can have, then the files go. Whoever finds a
topic that is marked, when the log is cleaned or a topic of that name is created, does what is left to do.
"""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from uuid import uuid4

from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.files import GOING, locked, topic_dir, topics_dir
from queuecore.providers.log.groups import Groups
from queuecore.providers.log.page import PageView
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition


def topics_locked(root: Path) -> AbstractContextManager[None]:
    """Nobody else creates, alters or deletes a topic meanwhile."""
    return locked(root / "topics.lock")


def delete_topic(root: Path, catalog: Catalog, groups: Groups, topic: str) -> None:
    """Under `topics_locked`. What is left of its files is removed by `sweep_topics`."""
    for place in _partitions(root, topic):
        with closing(PartitionWriter(root, place)) as writer:
            writer.mark_removed()
    catalog.delete_topic(topic)
    groups.topic_changed(topic, 0)
    # A member could commit until just now.
    catalog.forget_offsets(topic)
    retire_folder(root, topic)


def retire_folder(root: Path, topic: str) -> None:
    """Give the topic's folder, if there is one, a name under which it waits for being removed."""
    folder = topic_dir(root, topic)
    if folder.exists():
        folder.rename(topics_dir(root) / f"{GOING}{uuid4().hex}")


def is_marked(root: Path, topic: str) -> bool:
    """Whether someone began to delete the topic of this name and died."""
    return any(_is_marked(topic_dir(root, topic) / str(place.partition)) for place in _partitions(root, topic))


def sweep_topics(root: Path, catalog: Catalog, groups: Groups) -> None:
    """Finish every deletion that was begun."""
    with topics_locked(root):
        for topic in _folders(root):
            if is_marked(root, topic):
                delete_topic(root, catalog, groups, topic)
    for folder in topics_dir(root).glob(f"{GOING}*"):
        # Whoever deleted the topic may be removing the same files.
        shutil.rmtree(folder, ignore_errors=True)


def _folders(root: Path) -> list[str]:
    if not topics_dir(root).is_dir():
        return []
    return [path.name for path in topics_dir(root).iterdir() if not path.name.startswith(GOING)]


def _partitions(root: Path, topic: str) -> Iterator[ProviderPartition]:
    folder = topic_dir(root, topic)
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.name.isdecimal() and path.is_dir():
                yield ProviderPartition(topic, int(path.name))


def _is_marked(partition: Path) -> bool:
    try:
        return PageView.read(partition).is_removed
    except FileNotFoundError:
        return False
