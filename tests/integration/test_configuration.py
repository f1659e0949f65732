"""The whole configuration as one document: exported, and imported by the actions that people use."""

import itertools
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queueapi import runtime, wakeups
from queueapi.actions import configuration as importing
from queueapi.actions import provisioning
from queueapi.actions.actor import SYSTEM
from queueapi.actions.configuration import import_configuration, plan_configuration
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queues import change_queue
from queueapi.choices import FINAL_OPERATION_STATES, OperationState, QueueState
from queueapi.configuration.yaml_reading import read_yaml
from queueapi.configuration.yaml_writing import write_yaml
from queueapi.models import AuditEntry, MessageType, Operation, Queue, Tenant
from queueapi.selectors.configuration import configuration
from queuecore.topics import SYSTEM_TENANT
from tests.integration.configuration_kit import HOOK, empty_database, entry, exported, furnish, problems_of
from tests.kill_points import die_at
from tests.processes import Child
from tests.rest_kit import MORE, SOURCE, World, differences, snapshot
from workers.operations.runner import run_operation

# Tests that depend on how a database keeps, orders or locks things ask for `database` first.


@pytest.fixture
def world(installation) -> World:
    return World(installation)


@pytest.fixture
def furnished(world) -> World:
    furnish()
    return world


# --- export


def test_an_export_has_everything_in_an_order_of_its_own(database, furnished) -> None:
    document = exported()
    sections = ["tenant_profiles", "tenants", "queues", "message_types", "alert_channels", "alert_rules"]
    assert list(document) == ["format", *sections]
    assert [one["name"] for one in document["tenant_profiles"]] == ["default", "gold"]
    assert [one["name"] for one in document["tenants"]] == ["Foundry", "Greenhouse", "System"]
    assert [(one["tenant"], one["name"]) for one in document["queues"]] == [
        ("Foundry", "Orders"),
        ("System", "Alpha"),
        ("System", "Telemetry"),
        ("System", "Zulu"),
    ]
    assert [one["name"] for one in document["message_types"]] == ["Bill", "order"]
    foundry = entry(document, "tenants", "Foundry")
    assert (foundry["profile"], foundry["state"], foundry["reason"]) == ("gold", "suspended", "invoice 4711 is unpaid")
    assert (foundry["bytes_per_s"], foundry["partitions"]) == (1000, None)
    assert entry(document, "message_types", "order")["files"] == {"order.proto": SOURCE}
    assert write_yaml(configuration()) == write_yaml(configuration())


def test_how_something_was_changed_leaves_no_trace_in_an_export(furnished) -> None:
    before = write_yaml(configuration())
    queue = Queue.objects.get(name="Zulu")
    for retries in (7, queue.retries):
        change_queue(SYSTEM, queue, retries=retries)
    pause_queue(SYSTEM, queue, reason="too noisy")
    assert write_yaml(configuration()) == before


def test_a_queue_that_is_being_deleted_is_left_out(furnished) -> None:
    Queue.objects.filter(name="Alpha").update(state=QueueState.DELETING)
    assert "Alpha" not in [one["name"] for one in exported()["queues"]]
    again = {"format": 1, "queues": [{"tenant": "System", "name": "Alpha", "topic": "alpha", "handler": "log"}]}
    assert problems_of(again) == {"queues[0]": ["queue Alpha is being deleted; import again when it is gone"]}


# --- import


def test_an_export_changes_nothing_however_often_it_is_imported(database, furnished) -> None:
    document, before = exported(), snapshot(furnished)
    for act in (plan_configuration, import_configuration, import_configuration):
        plan = act(SYSTEM, document)
        assert (plan.summary, plan.changes, plan.warnings, plan.problems) == ("nothing would change", [], [], [])
    assert differences(before, snapshot(furnished)) == []


def test_an_export_makes_an_emptied_database_what_it_was(database, furnished) -> None:
    text = write_yaml(configuration())
    empty_database()
    plan = plan_configuration(SYSTEM, read_yaml(text, 64))
    things = "1 profile, 3 tenants, 4 queues, 2 message types, 2 alert channels, 3 alert rules"
    assert plan.summary == f"create {things}; change 1 alert rule"
    assert Queue.objects.count() == 0
    done = import_configuration(SYSTEM, read_yaml(text, 64))
    assert (done.summary, done.changes) == (plan.summary, plan.changes)
    assert write_yaml(configuration()) == text
    assert set(Queue.objects.values_list("state", flat=True)) == {QueueState.ACTIVE}
    assert "zulu.0" in runtime.provider().admin().topics()


def test_a_plan_changes_nothing_and_says_what_the_import_does(furnished) -> None:
    document = exported()
    entry(document, "queues", "Zulu")["retries"] = 9
    entry(document, "tenants", "Foundry").update(state="active", reason="", bytes_per_s=None)
    document["queues"].append({"tenant": "foundry", "name": "Bills", "topic": "bills", "handler": "log"})
    before = snapshot(furnished)
    plan = plan_configuration(SYSTEM, document)
    assert differences(before, snapshot(furnished)) == []
    told = {change.what: (change.before, change.after) for change in plan.changes}
    bills = told.pop("queue foundry/Bills")
    assert bills[0] is None
    assert (bills[1]["topic"], bills[1]["partitions"]) == ("bills", 3)
    assert told == {
        "tenant Foundry: state": ("suspended", "active"),
        "tenant Foundry: reason": ("invoice 4711 is unpaid", ""),
        "tenant Foundry: bytes_per_s": (1000, None),
        "queue System/Zulu: retries": (3, 9),
    }
    assert plan.summary == "create 1 queue; change 1 tenant, 1 queue"
    done = import_configuration(SYSTEM, document)
    assert (done.changes, done.warnings) == (plan.changes, plan.warnings)
    assert import_configuration(SYSTEM, document).changes == []


def test_what_is_left_out_stays(furnished) -> None:
    before = exported()
    part = {"format": 1, "queues": [{"tenant": "SYSTEM", "name": "Zulu", "retries": 9}]}
    assert [change.what for change in import_configuration(SYSTEM, part).changes] == ["queue SYSTEM/Zulu: retries"]
    entry(before, "queues", "Zulu")["retries"] = 9
    assert exported() == before


def test_each_change_is_audited_and_so_is_the_import(furnished) -> None:
    last = AuditEntry.objects.latest("id").id
    document = {
        "format": 1,
        "tenants": [{"name": "Harbour"}],
        "queues": [{"tenant": "System", "name": "Zulu", "retries": 9}],
    }
    import_configuration(SYSTEM, document)
    entries = AuditEntry.objects.filter(id__gt=last).order_by("id")
    assert [(one.action, one.object_type) for one in entries] == [
        ("create", "tenant"),
        ("change", "queue"),
        ("import", "configuration"),
    ]
    assert entries[2].after == {"created": {"tenant": 1}, "changed": {"queue": 1}}


def test_a_tenant_is_known_by_its_id_and_else_by_its_name(furnished) -> None:
    foundry = Tenant.objects.get(name="Foundry")
    renamed = {"format": 1, "tenants": [{"id": str(foundry.id), "name": "Ironworks"}]}
    assert [change.what for change in import_configuration(SYSTEM, renamed).changes] == ["tenant Ironworks: name"]
    other = {"format": 1, "tenants": [{"id": str(SYSTEM_TENANT)[:-1] + "1", "name": "ironworks"}]}
    [why] = problems_of(other)["tenants[0].id"]
    assert why == (
        f"that of tenant Ironworks is '{foundry.id}', and never changes; leave id out to mean that tenant, or choose "
        "another name"
    )


def test_a_suspension_for_another_reason_is_told_so(furnished) -> None:
    document = exported()
    entry(document, "tenants", "Foundry")["reason"] = "invoice 4712 is unpaid"
    import_configuration(SYSTEM, document)
    assert exported() == document


def test_queues_are_made_before_those_that_forward_to_them(furnished) -> None:
    forward = {"tenant": "System", "handler": "forward"}
    chain = [
        {**forward, "name": "A", "topic": "a", "handler_options": {"queue": "B"}},
        {**forward, "name": "B", "topic": "b", "handler_options": {"queue": "C"}},
        {"tenant": "System", "name": "C", "topic": "c", "handler": "log"},
    ]
    plan = import_configuration(SYSTEM, {"format": 1, "queues": chain})
    assert [change.what for change in plan.changes] == ["queue System/C", "queue System/B", "queue System/A"]
    assert set(Queue.objects.filter(name__in="ABC").values_list("state", flat=True)) == {QueueState.ACTIVE}


def test_own_queues_are_made_before_a_shared_one_of_their_name(world) -> None:
    twins = [
        {"tenant": tenant, "name": "Twin", "topic": "twin", "handler": "log"} for tenant in ("System", "Greenhouse")
    ]
    plan = import_configuration(SYSTEM, {"format": 1, "queues": twins})
    assert [change.what for change in plan.changes] == ["queue Greenhouse/Twin", "queue System/Twin"]


def test_a_topic_can_be_taken_from_one_message_type_by_another(furnished) -> None:
    document = exported()
    bill, order = entry(document, "message_types", "Bill"), entry(document, "message_types", "order")
    bill["topics"], order["topics"] = order["topics"], ["elsewhere"]
    import_configuration(SYSTEM, document)
    assert exported() == document


def test_a_message_type_gets_a_next_version_where_its_source_differs(furnished) -> None:
    document = exported()
    entry(document, "message_types", "order")["files"] = {"order.proto": MORE}
    import_configuration(SYSTEM, document)
    assert exported() == document
    assert MessageType.objects.get(name="order").version == 2


def test_a_plan_warns_of_what_is_seldom_wanted(furnished) -> None:
    document = {
        "format": 1,
        "tenant_profiles": [{"name": "gold", "max_queues": 9}],
        "queues": [{"tenant": "System", "name": "Zulu", "dlq_enabled": False}],
    }
    warnings = plan_configuration(SYSTEM, document).warnings
    assert warnings[0].startswith("profile gold: 1 tenant has this profile")
    assert warnings[-1].startswith("queue System/Zulu: without dead letters")


# --- secrets


def test_a_secret_never_leaves_and_one_that_comes_back_hidden_stays(furnished) -> None:
    queue = Queue.objects.get(name="Zulu")
    change_queue(SYSTEM, queue, handler="webhook", handler_options=HOOK)
    text = write_yaml(configuration())
    assert HOOK["secret"] not in text
    assert "/orders" not in text
    document = read_yaml(text, 64)
    assert import_configuration(SYSTEM, document).changes == []
    entry(document, "queues", "Zulu")["retries"] = 9
    import_configuration(SYSTEM, document)
    assert Queue.objects.get(name="Zulu").handler_options == HOOK


def test_a_secret_that_is_given_is_taken_and_told_without_showing_it(furnished) -> None:
    queue = Queue.objects.get(name="Zulu")
    change_queue(SYSTEM, queue, handler="webhook", handler_options=HOOK)
    document = exported()
    entry(document, "queues", "Zulu")["handler_options"] = {**HOOK, "secret": "another-one-for-a-signature-0123"}
    [change] = import_configuration(SYSTEM, document).changes
    assert change.what == "queue System/Zulu: a secret of handler_options"
    assert "signature" not in str(change)
    assert Queue.objects.get(name="Zulu").handler_options["secret"] == "another-one-for-a-signature-0123"
    assert import_configuration(SYSTEM, document).changes == []


def test_a_hidden_secret_that_nobody_knows_here_has_to_be_entered(furnished) -> None:
    change_queue(SYSTEM, Queue.objects.get(name="Zulu"), handler="webhook", handler_options=HOOK)
    document = exported()
    empty_database()
    found = problems_of(document)
    [place] = [f"queues[{number}]" for number, one in enumerate(document["queues"]) if one["name"] == "Zulu"]
    [why] = found[f"{place}.handler_options"]
    assert "'secret', 'url' came back hidden" in why
    assert "enter the value itself" in why


# --- at once, and killed


def test_a_creation_that_was_given_up_is_tried_again(furnished) -> None:
    document = exported()
    over = {"state": OperationState.FAILED, "finished_at": timezone.now()}
    failed = Operation.objects.create(kind="provision_queue", summary="x", total=1, **over)
    Queue.objects.filter(name="Zulu").update(state=QueueState.CREATING, operation=failed)
    assert import_configuration(SYSTEM, document).changes == []
    assert Queue.objects.get(name="Zulu").state == QueueState.ACTIVE


@pytest.mark.parametrize(
    ("owner", "is_done"),
    [
        # Of the import itself: the last of its transaction.
        ((importing, "audit"), False),
        # Of the second queue: after the commit, with the first one's topics made.
        ((provisioning, "provision_queue", "before", 2), True),
    ],
    ids=["before the commit", "after the commit"],
)
def test_who_is_killed_has_done_all_or_nothing_and_a_second_run_goes_on(database, furnished, owner, is_done) -> None:
    document = exported()
    names = ["One", "Two"]
    document["queues"] += [{"tenant": "System", "name": one, "topic": one.lower(), "handler": "log"} for one in names]

    def die_importing(_: Any) -> None:
        die_at(*owner)
        import_configuration(SYSTEM, document)

    runtime.close_provider()
    wakeups._sender.cache_clear()
    connections.close_all()
    with Child(die_importing) as child:
        assert child.hear_all() == []
        assert child.join() == -9
    states = list(Queue.objects.filter(name__in=names).order_by("name").values_list("state", flat=True))
    assert states == ([QueueState.ACTIVE, QueueState.CREATING] if is_done else [])
    assert import_configuration(SYSTEM, document).summary == ("nothing would change" if is_done else "create 2 queues")
    # What the dead one had begun is taken over when its lease is over, as any operation is.
    for operation in Operation.objects.exclude(state__in=FINAL_OPERATION_STATES):
        Operation.objects.filter(pk=operation.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
        run_operation(operation.pk)
    assert set(Queue.objects.filter(name__in=names).values_list("state", flat=True)) == {QueueState.ACTIVE}
    assert import_configuration(SYSTEM, document).changes == []


def test_two_imports_at_once_are_one_after_the_other(database, furnished) -> None:
    """They change the same things, in different orders."""
    queues = [{"tenant": "System", "name": name, "topic": name.lower()} for name in ("Alpha", "Telemetry", "Zulu")]
    documents = [
        {"format": 1, "queues": [{**one, "retries": retries} for one in order]}
        for retries, order in ((8, queues), (9, queues[::-1]))
    ]
    barrier, done = Barrier(2), []

    def run(document: dict[str, Any]) -> None:
        try:
            barrier.wait()
            done.append(import_configuration(SYSTEM, document).summary)
        finally:
            connections.close_all()

    threads = [Thread(target=run, args=(document,)) for document in documents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["change 3 queues"] * 2
    assert len({*Queue.objects.filter(tenant=SYSTEM_TENANT).values_list("retries", flat=True)}) == 1


# --- whatever it is


NAMES = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda name: name.strip("."))
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
LIMITS = st.none() | st.integers(1, 2**53)
PROFILES = st.fixed_dictionaries(
    {"name": NAMES.map("p-{}".format)},
    optional={
        "description": TEXTS,
        "messages_per_s": LIMITS,
        "burst_s": st.integers(1, 3600),
        "approves_isolation": st.booleans(),
        "processing_strategies": st.just([]) | st.just(["SKIP_ALL_FAILURES", "RETRY_ALL"]),
    },
)
STATES = st.just({"state": "active"}) | st.builds(lambda why: {"state": "suspended", "reason": f"x{why}"}, NAMES)
TENANTS = st.builds(
    lambda fields, state: {**fields, **state},
    st.fixed_dictionaries({"name": NAMES.map("t-{}".format)}, optional={"stored_bytes": LIMITS, "description": TEXTS}),
    STATES,
)
QUEUES = st.fixed_dictionaries(
    {"name": NAMES.map("q-{}".format), "handler": st.just("log")},
    optional={
        "partitions": st.integers(1, 3),
        "retries": st.integers(0, 1000),
        "failure_percentage": st.floats(0, 100),
        "dlq_max_ratio": st.floats(0.001, 1),
        "processing_strategy": st.sampled_from(["RETRY_ALL", "SKIP_ALL_FAILURES"]),
        "max_backlog": st.integers(0, 10**12),
        "label": NAMES,
    },
)


def by_name(entries: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(entries, max_size=3, unique_by=lambda one: one["name"].lower())


# The provider keeps its topics: those of another example are not what this one needs.
topics = itertools.count()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(profiles=by_name(PROFILES), tenants=by_name(TENANTS), queues=by_name(QUEUES), chance=st.randoms())
def test_whatever_was_exported_is_the_same_after_an_import_into_nothing(
    installation, profiles, tenants, queues, chance
) -> None:
    empty_database()
    names = [profile["name"] for profile in profiles]
    tenants = [{"name": "System", "id": str(SYSTEM_TENANT)}, *tenants]
    for tenant in tenants[1:]:
        tenant["profile"] = chance.choice(["default", *names])
    for queue in queues:
        queue.update(tenant=chance.choice(tenants)["name"], topic=f"topic-{next(topics)}")
    import_configuration(SYSTEM, {"format": 1, "tenant_profiles": profiles, "tenants": tenants, "queues": queues})
    text = write_yaml(configuration())
    empty_database()
    import_configuration(SYSTEM, read_yaml(text, 64))
    assert write_yaml(configuration()) == text
    assert import_configuration(SYSTEM, read_yaml(text, 64)).changes == []
