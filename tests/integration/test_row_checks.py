"""Whether a row could be stored: the same words as Django's, and few questions to the database."""

from uuid import uuid4

import pytest
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from queueapi.actions.row_checks import check_row
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.errors import InvalidInput
from queueapi.models import AlertRule, Queue
from tests.console_pages import queries_of

pytestmark = pytest.mark.django_db


def queue(**fields: object) -> Queue:
    return Queue(tenant=ensure_system_tenant(), name="Orders", topic="orders", handler="log", **fields)


def test_constraints_that_hold_are_asked_about_together() -> None:
    row = queue()
    # The key, the name and the topic, which nobody else may have; and all check constraints.
    assert queries_of(lambda: check_row(row)) == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"retry_pause_ms": 10, "max_retry_pause_ms": 5},
        {"dlq_max_ratio": 0, "failure_percentage": 101, "retention_ms": -2},
        {"partitions": 0},
        {"concurrency": "many"},
        {"name": "x" * 300, "retry_pause_ms": 10, "max_retry_pause_ms": 5},
    ],
)
def test_what_does_not_hold_is_told_in_the_same_words(fields: dict[str, object]) -> None:
    row = queue(**{name: value for name, value in fields.items() if name != "name"})
    row.name = str(fields.get("name", row.name))
    with pytest.raises(ValidationError) as told:
        row.full_clean()
    with pytest.raises(InvalidInput) as refused:
        check_row(row)
    assert sorted(words(refused.value.fields["fields"])) == sorted(words(told.value.message_dict))


def words(told: dict[str, list[str]]) -> list[str]:
    """What Django says of a constraint, where it is about a field, is told at that."""
    at_fields = (text for name, texts in told.items() for text in texts if name != NON_FIELD_ERRORS)
    return [*at_fields, *(text.split(": ", 1)[1] for text in told.get(NON_FIELD_ERRORS, []))]


def test_what_another_row_has_already_is_told() -> None:
    queue().save()
    with pytest.raises(InvalidInput, match="another queue is called so") as refused:
        check_row(queue())
    told = refused.value.fields["fields"]
    assert told["name"] == ["another queue is called so, whatever the case; choose another name"]
    assert told["topic"] == ["this is another queue's; choose another topic"]


def test_a_row_that_was_not_read_is_looked_for() -> None:
    rule = AlertRule(name="lag", metric="lag_messages", threshold=1, resolve_at=1, queue_id=uuid4())
    with pytest.raises(InvalidInput, match="queue"):
        check_row(rule)


def test_what_is_unknown_keeps_no_constraint_from_being_checked() -> None:
    """`null` beside a constraint that does not hold: the whole does not."""
    row = queue(successor=None, operation=None, retention_ms=-5)
    with pytest.raises(InvalidInput, match="retention"):
        check_row(row)
