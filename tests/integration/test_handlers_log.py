"""`log`: one line for each message, whatever it holds."""

import logging

import pytest

from queuecore import MessageHandler, open_queues
from queuecore.consuming.handlers import bind, check_handler
from queuecore.errors import ConfigurationError
from queuecore.messages import TENANT_ID

LOGGER = "switchyard.handlers.log"


def handle(handler: MessageHandler, data: bytes, **headers: bytes) -> None:
    with open_queues("in-memory") as queues:
        queues.create("readings")
        queues.publish("readings", None, data, headers).result()
        with queues.subscribe("readings", handler, group="log") as logging_all:
            logging_all.drain()


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records if record.name == LOGGER]


def test_a_line_says_where_how_large_and_whose(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        handle(bind("log"), b"secret payload", **{TENANT_ID: b"tenant-1"})
    assert lines(caplog) == [(logging.INFO, "readings: readings.0[0]@0, 14 bytes, tenant 'tenant-1'")]


def test_level_and_preview(caplog: pytest.LogCaptureFixture) -> None:
    handle(bind("log", {"level": "WARNING", "preview_bytes": 8}), b"21.5\nFAKE LINE")
    assert lines(caplog) == [
        (logging.WARNING, "readings: readings.0[0]@0, 14 bytes, tenant None: '21.5\\nFAK'…"),
    ]


def test_a_tenant_s_name_is_on_one_line_too(caplog: pytest.LogCaptureFixture) -> None:
    handle(bind("log", {"level": "ERROR", "preview_bytes": 9}), b"\xff\x00", **{TENANT_ID: b"a\nERROR b"})
    ((_, line),) = lines(caplog)
    assert "\n" not in line
    assert line.endswith("tenant 'a\\nERROR b': '\\\\xff\\x00'")


def test_a_level_that_nobody_reads_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        handle(bind("log"), b"x")
    assert lines(caplog) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"level": "LOUD"}, "one of DEBUG, INFO, WARNING, ERROR"),
        ({"preview_bytes": 1_000_000}, "use 0 to 2000"),
        ({"preview": 1}, "did you mean 'preview_bytes'?"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_configured(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_handler("log", options)
    assert problem in refused.value.message
