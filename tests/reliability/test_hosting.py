"""The worker that hosts consumers, told to stop in every way there is: nothing is lost, and what is finished in good
order is not handled twice."""

import signal
from pathlib import Path

import pytest

from queuecore.testing.waiting import wait_until
from tests.reliability.hosting import Installation, Worker
from workers.consumers import DRAIN_S

MESSAGES = ("slow", *(f"message-{number}" for number in range(20)))


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "data")


def test_a_warm_shutdown_drains_and_nothing_is_handled_twice(installation: Installation) -> None:
    installation.publish(*MESSAGES)
    with Worker(installation) as worker:
        wait_until(lambda: installation.times("begin")["slow"])
        worker.send(signal.SIGTERM)
        wait_until(lambda: "Warm shutdown" in worker.output())
        installation.open_gate()
        assert worker.wait() == 0
        assert "Traceback" not in worker.output()
    assert installation.times("begin") == installation.times("end")
    assert installation.committed() == len(installation.journal()) // 2
    with Worker(installation):
        wait_until(lambda: installation.committed() == len(MESSAGES))
    assert installation.times("begin") == dict.fromkeys(MESSAGES, 1)


def test_a_cold_shutdown_gives_way_at_once_and_the_message_comes_again(installation: Installation) -> None:
    installation.publish(*MESSAGES)
    with Worker(installation) as worker:
        wait_until(lambda: installation.times("begin")["slow"])
        worker.send(signal.SIGQUIT)
        worker.wait(DRAIN_S)
        assert "gave way" in worker.output()
    assert not installation.times("end")
    installation.open_gate()
    with Worker(installation):
        wait_until(lambda: installation.committed() == len(MESSAGES))
    assert installation.times("begin") == {**dict.fromkeys(MESSAGES, 1), "slow": 2}


def test_a_warm_shutdown_that_waits_for_a_handler_can_be_made_cold(installation: Installation) -> None:
    installation.publish(*MESSAGES)
    with Worker(installation) as worker:
        wait_until(lambda: installation.times("begin")["slow"])
        worker.send(signal.SIGTERM)
        wait_until(lambda: "Warm shutdown" in worker.output())
        worker.send(signal.SIGQUIT)
        worker.wait(DRAIN_S)
    assert not installation.times("end")


def test_a_worker_that_is_killed_loses_nothing(installation: Installation) -> None:
    installation.publish(*MESSAGES)
    with Worker(installation) as worker:
        wait_until(lambda: installation.times("begin")["slow"])
        worker.send(signal.SIGKILL)
        worker.wait()
    installation.open_gate()
    with Worker(installation):
        wait_until(lambda: installation.committed() == len(MESSAGES))
    assert installation.times("end") == dict.fromkeys(MESSAGES, 1)
    assert not installation.letters()


def test_a_message_that_kills_its_worker_is_put_aside_and_the_rest_goes_on(installation: Installation) -> None:
    installation.publish("before", "poison", "after")
    installation.open_gate()
    deaths = 0
    while not installation.letters():
        with Worker(installation) as worker:
            wait_until(lambda: worker.process.poll() is not None or installation.letters())
            deaths += worker.process.poll() == -signal.SIGKILL
        assert deaths <= 2, "one time to become suspect, one time alone"
    with Worker(installation):
        wait_until(lambda: installation.committed() == 3)
    # More than one where the worker was stopped between the letter and the commit.
    assert set(installation.letters()) == {b"poison"}
    assert installation.times("begin")["poison"] == deaths
    assert installation.times("end")["after"] == 1
