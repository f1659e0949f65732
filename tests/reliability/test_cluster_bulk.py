"""Leases hold while another process writes in bulk to the same SQLite installation, and in one transaction for longer
than they last."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from queuecore.testing.waiting import wait_until
from tests.reliability.cluster_bulk import HOLDING, WRITTEN
from tests.reliability.cluster_installation import Installation, Process
from tests.reliability.cluster_journal import Event, What
from tests.reliability.cluster_rows import Rows, SqliteDatabase

LEASE_S: Final = 2.0
SETTINGS: Final = {
    "SWITCHYARD_CLUSTER_LEASE_MS": f"{LEASE_S * 1000:.0f}",
    "SWITCHYARD_CLUSTER_COORDINATOR_LEASE_MS": f"{LEASE_S * 1000:.0f}",
    "SWITCHYARD_QUEUE_LOG_SESSION_TIMEOUT_MS": f"{LEASE_S * 1000:.0f}",
}
HOSTS: Final = {"host-1", "host-2"}


def who_has_what(rows: Rows) -> object:
    """All that changes where somebody lost a lease, a partition or the lead, but not otherwise."""
    lives = {(one.service_id, one.incarnation, one.is_gone) for one in rows.instances.values()}
    return lives, set(rows.partitions), rows.coordinator, rows.term


def ended(events: list[Event]) -> set[tuple[str, int]]:
    return {(event.entity, event.number) for event in events if event.what is What.ENDED}


def test_leases_hold_while_another_writes_in_bulk(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path)
    installation = Installation(tmp_path, database, SETTINGS)
    installation.prepare()
    try:
        for name in sorted(HOSTS):
            installation.start_host(name)
        installation.start_load("bulk")
        wait_until(lambda: database.read().is_settled(HOSTS))
        before = who_has_what(database.read())
        bulk = installation.start_bulk()
        wait_for_word(bulk, WRITTEN)
        assert who_has_what(database.read()) == before
        wait_for_word(bulk, HOLDING)
        wait_for_a_whole_lease(installation)
        wait_for_new_messages(installation)
        assert bulk.end() == 0, bulk.log.read_text()[-2000:]
        assert who_has_what(database.read()) == before
        assert [event for event in installation.events() if event.what is What.OVER] == []
    except AssertionError as error:
        error.add_note(f"journals and logs are in {tmp_path}")
        raise
    finally:
        installation.kill_all()


def wait_for_word(process: Process, word: str) -> None:
    wait_until(lambda: word in process.log.read_text() or process.process.poll() is not None)
    assert word in process.log.read_text(), process.log.read_text()[-2000:]


def wait_for_a_whole_lease(installation: Installation) -> None:
    """Until none of the leases there were would last, had it not been renewed since."""
    since = installation.database.read().instances

    def are_renewed() -> bool:
        rows = installation.database.read().instances
        return all(
            rows[name].lease_expires_at > since[name].lease_expires_at + timedelta(seconds=LEASE_S) for name in HOSTS
        )

    wait_until(are_renewed)


def wait_for_new_messages(installation: Installation) -> None:
    """Until all that was stored by now is handled, and something that was stored after that."""
    stored = {(event.entity, event.number) for event in installation.events() if event.what is What.STORED}

    def are_handled() -> bool:
        handled = ended(installation.events())
        return stored <= handled and len(handled) > len(stored)

    wait_until(are_handled)
