"""What an import refuses: all of it at once, each at its place, with nothing changed."""

import pytest

from queueapi import runtime
from queueapi.actions.actor import SYSTEM
from queueapi.actions.configuration import import_configuration, plan_configuration
from queueapi.models import Tenant
from queuecore.errors import ProviderUnavailable
from tests.integration.configuration_kit import entry, exported, furnish, problems_of
from tests.rest_kit import SOURCE, World, differences, snapshot


@pytest.fixture
def world(installation) -> World:
    return World(installation)


@pytest.fixture
def furnished(world) -> World:
    furnish()
    return world


def test_all_problems_are_told_at_once_each_with_its_place(furnished) -> None:
    document = {
        "format": 2,
        "quues": [],
        "tenant_profiles": [{"name": "silver", "max_queues": "many"}],
        "tenants": [
            {"name": "Harbour", "profile": "silver"},
            {"name": "Quay", "profile": "glod", "burst_s": 1},
            {"name": "Pier", "state": "suspended"},
            {"name": "quay"},
            {"description": "x"},
            "Dock",
        ],
        "queues": [
            {"tenant": "Harbour", "name": "H", "topic": "h", "handler": "log"},
            {"tenant": "System", "name": "Zulu", "partitions": 7, "topic": "other", "retris": 3},
            {"tenant": "System", "name": "Alpha", "partitions": 7, "topic": "other"},
            {"tenant": "Sistem", "name": "S", "topic": "s", "handler": "log"},
            {"tenant": "System", "name": "N"},
            {"tenant": "System", "name": "R", "topic": "r", "handler": "log", "partitions": 5000, "concurrency": 0},
            {"tenant": "System", "name": "W", "topic": "w", "handler": "wbhook"},
            {"tenant": "System", "name": "T", "topic": "t", "handler": "log", "retries": True},
        ],
        "message_types": [{"name": "order", "message": "shop.Bill"}, {"name": "new"}],
    }
    before = snapshot(furnished)
    found = problems_of(document)
    assert differences(before, snapshot(furnished)) == []
    resized = "another number of partitions is a resize of the queue"
    kept = f"keep that, or create another queue and drain this one to it; {resized}"
    never = f"and never changes; stored messages depend on it: {kept}"
    also = "stored messages were made as that: keep it, or enter another message type"
    assert found.pop("queues[5].partitions") == ["5000 cannot be; use 1 to 1,000 partitions"]
    assert found.pop("queues[5].concurrency")[0] == "0 cannot be; use 1 to 1,000 messages side by side"
    assert "wbhook" in found.pop("queues[6].handler")[0]
    assert found == {
        "format": ["2 is not known here; this release reads format 1"],
        "quues": ["there is no section 'quues'; did you mean queues?"],
        "tenant_profiles[0].max_queues": ["'many' cannot be; give a whole number, or null"],
        "tenants[1].profile": ["there is no profile 'glod'; did you mean gold?"],
        "tenants[2].reason": ["say why it is suspended: whoever is refused wants to know"],
        "tenants[3]": ["tenants[1] is the same tenant; keep one of them"],
        "tenants[4].name": ["this says which tenant is meant; give it"],
        "tenants[5]": ["describe a tenant by its keys"],
        "queues[1].retris": ["there is no key 'retris'; did you mean retries?"],
        "queues[1].partitions": [f"it is 3, {never}"],
        "queues[1].topic": [f"it is 'zulu', {never}"],
        "queues[2].partitions": [f"it is 3, {never}"],
        "queues[2].topic": [f"it is 'alpha', {never}"],
        "queues[3].tenant": ["there is no tenant 'Sistem'; did you mean System?"],
        "queues[4].topic": ["a new queue needs this"],
        "queues[4].handler": ["a new queue needs this"],
        "queues[7].retries": ["True cannot be; give a whole number"],
        "message_types[0].message": [f"it is 'shop.Order', and never changes; {also}"],
        "message_types[1].message": ["a new message type needs this"],
        "message_types[1].files": ["give these, or a descriptor_set, for a message type that is new"],
    }


@pytest.mark.parametrize(
    "nonsense", [None, [], "format: 1", 7, {"format": True}, {"format": 1, "queues": {"name": "x"}}]
)
def test_what_is_no_configuration_is_refused(world, nonsense) -> None:
    assert problems_of(nonsense)


@pytest.mark.parametrize(
    ("section", "values", "place"),
    [
        ("tenants", {"name": "a\0b"}, "tenants[0].name"),
        ("tenants", {"name": "\ud800"}, "tenants[0].name"),
        ("tenants", {"name": "x" * 101}, "tenants[0].name"),
        ("tenants", {"name": "x", "id": "7"}, "tenants[0].id"),
        ("tenants", {"name": "x", "messages_per_s": 2**63}, "tenants[0].messages_per_s"),
        ("tenants", {"name": "x", "messages_per_s": 1.5}, "tenants[0].messages_per_s"),
        ("tenants", {"name": "x", "\ud800": 1}, "tenants[0].\\ud800"),
        ("queues", {"tenant": "System", "name": "x", "topic": "x", "handler": "log", "handler_options": "s3cret"},
         "queues[0].handler_options"),
        ("message_types", {"name": "x", "message": "M", "descriptor_set": "%"}, "message_types[0].descriptor_set"),
        ("message_types", {"name": "x", "message": "shop.Order", "files": {"a.proto": SOURCE}, "descriptor_set": ""},
         "message_types[0].descriptor_set"),
        ("message_types", {"name": "x", "message": "M", "files": {"a.proto": "oops"}}, "message_types[0].files"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_at_its_place(world, section, values, place) -> None:
    found = problems_of({"format": 1, section: [values]})
    assert list(found) == [place]
    assert "s3cret" not in str(found)


def test_an_incompatible_next_version_is_refused_with_each_reason(furnished) -> None:
    document = exported()
    other = SOURCE.replace("string id", "int64 id")
    entry(document, "message_types", "order")["files"] = {"order.proto": other}
    [why] = problems_of(document)["message_types[1]"]
    assert "shop.Order.id" in why


def test_a_profile_that_is_too_narrow_for_a_queue_stands_in_the_way_of_it(furnished) -> None:
    document = {
        "format": 1,
        "tenant_profiles": [{"name": "tiny", "max_partitions_per_queue": 1}],
        "tenants": [{"name": "Harbour", "profile": "tiny"}],
        "queues": [{"tenant": "Harbour", "name": "Own", "topic": "own", "handler": "log", "partitions": 2}],
    }
    [why] = problems_of(document)["queues[0].partitions"]
    assert why.startswith("use at most 1; 2 were asked for")
    assert not Tenant.objects.filter(name="Harbour").exists()


def test_that_the_provider_is_away_is_no_problem_of_the_document(world, monkeypatch) -> None:
    def away() -> None:
        raise ProviderUnavailable("nobody answers")

    monkeypatch.setattr(runtime, "provider", away)
    document = {"format": 1, "queues": [{"tenant": "System", "name": "Q", "topic": "q", "handler": "log"}]}
    for act in (plan_configuration, import_configuration):
        with pytest.raises(ProviderUnavailable):
            act(SYSTEM, document)
