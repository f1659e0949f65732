"""After the machine was restarted: what was committed may be gone.

With less than `acks=all` a power cut takes records that groups have committed already. New records would get the same
offsets, and those groups would pass over them. So before anything else is done with the log, every partition is checked
and no group is left beyond the end of what there is.
"""

import logging
from contextlib import closing
from pathlib import Path

from queuecore.errors import QueueError
from queuecore.providers.log.catalog import Catalog
from queuecore.providers.log.files import UNFINISHED, locked
from queuecore.providers.log.page import boot_id
from queuecore.providers.log.writer import PartitionWriter
from queuecore.topics import ProviderPartition

logger = logging.getLogger(__name__)


def recover_after_restart(root: Path, catalog: Catalog) -> None:
    """Once for each start of the machine, by whoever opens the log first; the others wait."""
    noted = root / "boot"
    if _is_current(noted):
        return
    with locked(root / "boot.lock"):
        if _is_current(noted):
            return
        for spec in catalog.topics().values():
            for number in range(spec.partitions):
                _recover(root, catalog, ProviderPartition(spec.name, number))
        unfinished = noted.with_suffix(UNFINISHED)
        unfinished.write_bytes(boot_id())
        unfinished.rename(noted)


def _is_current(noted: Path) -> bool:
    try:
        return noted.read_bytes() == boot_id()
    except FileNotFoundError:
        return False


def _recover(root: Path, catalog: Catalog, place: ProviderPartition) -> None:
    try:
        with closing(PartitionWriter(root, place)) as writer:
            writer.recover()
            catalog.cap_offsets(place, writer.end)
    except (QueueError, OSError) as error:
        logger.warning("%s was not checked after the machine's restart, whoever uses it will see: %s", place, error)
