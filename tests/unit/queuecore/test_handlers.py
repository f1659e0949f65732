"""Handlers by name."""

import pytest

from queuecore.consuming import handlers
from queuecore.consuming.handlers import HandlerContext, context_of, find_handler, handler, handler_names
from queuecore.errors import UnknownHandler
from queuecore.messages import Record


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_HANDLERS", {})


def test_a_handler_is_found_by_its_name() -> None:
    @handler("billing")
    def bill(record: Record, context: HandlerContext) -> None: ...

    assert find_handler("billing") is bill
    assert handler_names() == ["billing"]


def test_a_slip_of_the_pen_gets_a_suggestion() -> None:
    handler("billing")(lambda record, context: None)
    with pytest.raises(UnknownHandler, match="did you mean 'billing'"):
        find_handler("biling")
    with pytest.raises(UnknownHandler, match="there are: billing"):
        find_handler("something else")


def test_a_replayed_message_says_so() -> None:
    record = Record("topic", 0, 0, 0, None, {"__queue.replay.letter": b"42", "tenantId": b"t"}, b"")
    assert context_of(record, "Main", 2) == HandlerContext("Main", 2, "t", "42")
