"""Tenants and their profiles: what can be entered, what is refused, what is audited, and what a plan says."""

from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from queueapi import runtime
from queueapi.actions.actor import SYSTEM, Actor
from queueapi.actions.messages import publish_message
from queueapi.actions.pauses import pause_queue
from queueapi.actions.queues import change_queue, create_queue
from queueapi.actions.tenant_profiles import (
    change_profile,
    create_profile,
    delete_profile,
    plan_profile_change,
    plan_profile_creation,
    plan_profile_deletion,
)
from queueapi.actions.tenant_removal import delete_tenant, plan_tenant_deletion
from queueapi.actions.tenant_states import plan_resumption, plan_suspension, resume_tenant, suspend_tenant
from queueapi.actions.tenants import (
    change_tenant,
    create_tenant,
    ensure_system_tenant,
    plan_tenant_change,
    plan_tenant_creation,
)
from queueapi.change_plans import Change, ChangePlan
from queueapi.choices import TenantState
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import DEFAULT_PROFILE, AuditEntry, DeadLetter, Pause, Queue, Tenant, TenantProfile
from queuecore.providers.base import DAY_MS, TopicSpec
from tests.letters import make_letter
from workers.cluster import KnownPartitions

ADA = Actor("ada")


def own_queue(tenant: Tenant, name: str = "Own", **options: Any) -> Queue:
    return create_queue(SYSTEM, tenant, name=name, topic=name.lower(), handler="log", **options)


def then(plan: ChangePlan) -> dict[str, Any]:
    return {change.what: change.after for change in plan.changes}


def told(action: str, object_id: object) -> AuditEntry:
    return AuditEntry.objects.get(action=action, object_id=str(object_id), actor_name="ada")


# Profiles


def test_the_default_profile_is_always_there(database) -> None:
    default = TenantProfile.objects.get(pk=DEFAULT_PROFILE)
    assert (default.name, default.is_default, default.messages_per_s, default.max_queues) == (
        "default",
        True,
        None,
        None,
    )
    call_command("flush", verbosity=0, interactive=False)
    assert TenantProfile.objects.get().is_default
    assert create_tenant(SYSTEM, "Acme").profile == default


def test_a_profile_is_created_changed_and_deleted(database) -> None:
    made = create_profile(ADA, name="small", messages_per_s=100, submit_strategies=["SEQUENTIAL", "BURST"])
    assert made.submit_strategies == ["BURST", "SEQUENTIAL"]
    assert told("create", made.id).after["messages_per_s"] == 100
    changed = change_profile(ADA, made, messages_per_s=200, description="for trials")
    entry = told("change", made.id)
    assert (entry.before, entry.after) == (
        {"messages_per_s": 100, "description": ""},
        {"messages_per_s": 200, "description": "for trials"},
    )
    change_profile(ADA, changed, messages_per_s=200)
    assert AuditEntry.objects.filter(action="change").count() == 1
    delete_profile(ADA, changed)
    assert told("delete", made.id).before["name"] == "small"
    assert not TenantProfile.objects.filter(pk=made.pk).exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "DEFAULT"}, "another profile is called so, whatever the case"),
        ({"name": ""}, "name: This field cannot be blank"),
        ({"messages_per_s": 0}, "messages_per_s: .*greater than or equal to 1"),
        ({"burst_s": 4000}, "burst_s: .*less than or equal to 3600"),
        ({"burst_s": None}, "burst_s: This field cannot be null"),
        ({"min_retention_ms": 2000, "max_retention_ms": 1000}, "max_retention_ms: use no less than min_retention_ms"),
        ({"submit_strategies": ["ALL"]}, "there is no 'ALL'; choose from BURST, BATCH"),
        ({"processing_strategies": "RETRY_ALL"}, "processing_strategies: give a list"),
        ({"message_per_s": 1}, "did you mean messages_per_s?"),
    ],
)
def test_a_profile_that_cannot_be_is_refused_with_what_to_enter(db, fields, why) -> None:
    for make in (plan_profile_creation, lambda **given: create_profile(ADA, **given)):
        with pytest.raises(InvalidInput, match=why):
            make(**{"name": "small", **fields})
    assert TenantProfile.objects.count() == 1


def test_the_database_refuses_what_no_profile_may_be(database) -> None:
    for wrong in (
        {"messages_per_s": 0},
        {"burst_s": 0},
        {"name": "Default"},
        {"min_retention_ms": 2, "max_retention_ms": 1},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            TenantProfile.objects.create(**{"name": "x", **wrong})


def test_the_default_profile_keeps_its_name_and_stays(db) -> None:
    default = TenantProfile.objects.get(pk=DEFAULT_PROFILE)
    with pytest.raises(InvalidInput, match="the default profile keeps its name"):
        change_profile(ADA, default, name="standard")
    assert change_profile(ADA, default, messages_per_s=10).messages_per_s == 10
    with pytest.raises(NotChangeable, match="the default profile is always there"):
        delete_profile(ADA, default)
    assert "always there" in plan_profile_deletion(default).why_not


def test_a_profile_that_tenants_have_is_not_deleted(database) -> None:
    small = create_profile(ADA, name="small")
    for number in range(5):
        create_tenant(ADA, f"Tenant {number}", profile=small)
    why = "tenants have profile small: Tenant 0, Tenant 1, Tenant 2 and 2 more; give them another profile first"
    assert plan_profile_deletion(small).why_not == why
    with pytest.raises(NotChangeable) as refused:
        delete_profile(ADA, small)
    assert refused.value.message == why
    with pytest.raises(ProtectedError):
        small.delete()


def test_a_plan_of_a_profile_changes_nothing_and_says_whom_it_concerns(db) -> None:
    small = create_profile(ADA, name="small")
    create_tenant(ADA, "Acme", profile=small)
    plan = plan_profile_change(small, messages_per_s=5, max_queues=1, label="gold")
    assert (Change("max_queues", None, 1) in plan.changes, plan.why_not) == (True, "")
    assert plan.warnings == (
        "1 tenant has this profile, and it holds for them at once",
        "queues that tenants have already stay as they are",
        "own queues of its tenants are consumed only by services with the label 'gold'",
    )
    small.refresh_from_db()
    assert small.max_queues is None
    assert Change("name", None, "gold") in plan_profile_creation(name="gold").changes
    assert not TenantProfile.objects.filter(name="gold").exists()


# Tenants


def test_a_tenant_is_created_and_changed(database) -> None:
    tenant = create_tenant(ADA, "Acme", description="Contract 1")
    assert (tenant.profile_id, tenant.state) == (DEFAULT_PROFILE, TenantState.ACTIVE)
    assert told("create", tenant.id).after["profile"] == str(DEFAULT_PROFILE)
    small = create_profile(ADA, name="small", messages_per_s=5, burst_s=2)
    changed = change_tenant(ADA, tenant, profile=small, messages_per_s=7)
    assert (changed.quotas.messages_per_s, changed.quotas.burst_s, changed.quotas.bytes_per_s) == (7, 2, None)
    entry = told("change", tenant.id)
    assert entry.before == {"profile": str(DEFAULT_PROFILE), "messages_per_s": None}
    assert entry.after == {"profile": str(small.id), "messages_per_s": 7}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "ACME"}, "another tenant is called so, whatever the case"),
        ({"bytes_per_s": 0}, "bytes_per_s: .*greater than or equal to 1"),
        ({"profile_id": uuid4()}, "no field 'profile_id' that may be entered; did you mean profile?"),
        ({"state": "suspended"}, "no field 'state' that may be entered"),
    ],
)
def test_a_tenant_that_cannot_be_is_refused_with_what_to_enter(db, fields, why) -> None:
    create_tenant(SYSTEM, "Acme")
    other = create_tenant(SYSTEM, "Other")
    for make in (
        lambda **given: create_tenant(ADA, **{"name": "New", **given}),
        lambda **given: plan_tenant_creation(**{"name": "New", **given}),
        lambda **given: change_tenant(ADA, other, **given),
        lambda **given: plan_tenant_change(other, **given),
    ):
        with pytest.raises(InvalidInput, match=why):
            make(**fields)


def test_a_plan_of_a_tenant_warns_of_what_its_quotas_mean(installation) -> None:
    own_queue(installation.tenant, partitions=4)
    plan = plan_tenant_change(installation.tenant, bytes_per_s=1000, burst_s=3, partitions=2)
    assert then(plan) == {"bytes_per_s": 1000, "burst_s": 3, "partitions": 2}
    assert "messages of more than 3,000 bytes are always refused" in plan.warnings[0]
    assert "have 4 partitions, more than the 2" in plan.warnings[1]
    assert Tenant.objects.get(pk=installation.tenant.pk).partitions is None


def test_a_tenant_is_suspended_for_a_reason_and_resumed(database) -> None:
    tenant = create_tenant(SYSTEM, "Acme")
    assert then(plan_suspension(tenant, "unpaid")) == {"state": "suspended", "reason": "unpaid"}
    assert suspend_tenant(ADA, tenant, " unpaid ").reason == "unpaid"
    assert suspend_tenant(ADA, tenant, "another reason").reason == "unpaid"
    assert told("suspend", tenant.id).after == {"state": "suspended", "reason": "unpaid"}
    assert then(plan_resumption(tenant)) == {"state": "active", "reason": ""}
    assert resume_tenant(ADA, tenant).state == TenantState.ACTIVE
    assert told("resume", tenant.id).before == {"state": "suspended", "reason": "unpaid"}
    assert plan_resumption(tenant) == ChangePlan("nothing would change")
    for reason in ("", " ", "x" * 501, "a\0b"):
        with pytest.raises(InvalidInput, match="say in 1 to 500 characters why"):
            suspend_tenant(ADA, tenant, reason)
    with pytest.raises(IntegrityError), transaction.atomic():
        Tenant.objects.update(state=TenantState.SUSPENDED)


def test_the_systems_tenant_is_not_suspended_or_deleted(installation) -> None:
    system = ensure_system_tenant()
    with pytest.raises(NotChangeable, match="pause a queue instead"):
        suspend_tenant(ADA, system, "x")
    assert "pause a queue instead" in plan_suspension(system, "x").why_not
    with pytest.raises(NotChangeable, match="is always there"):
        delete_tenant(ADA, system)


# Deleting


def test_a_tenant_with_nothing_of_its_own_is_deleted_with_its_pauses(database, installation) -> None:
    tenant, tenant_id = installation.tenant, installation.tenant.id
    pause_queue(SYSTEM, installation.queue, tenant=tenant, reason="noisy")
    publish_message(installation.queue, tenant, uuid4(), b"shared")
    plan = plan_tenant_deletion(tenant)
    assert (plan.summary, plan.why_not) == ("delete tenant Greenhouse", "")
    assert {*then(plan).values()} == {None}
    assert plan.warnings[0] == "1 pause of its messages is lifted"
    delete_tenant(ADA, tenant)
    assert not Tenant.objects.filter(name="Greenhouse").exists()
    assert not Pause.objects.exists()
    assert told("delete", tenant_id).before["name"] == "Greenhouse"


def test_a_tenant_with_queues_letters_or_messages_is_not_deleted(database, installation) -> None:
    tenant = installation.tenant

    def refused() -> str:
        with pytest.raises(NotChangeable) as error:
            delete_tenant(ADA, tenant)
        assert plan_tenant_deletion(tenant).why_not == error.value.message
        return error.value.message

    own = own_queue(tenant, partitions=1)
    publish_message(own, tenant, uuid4(), b"own")
    assert refused() == "it has 1 queue of its own, such as Own; delete it first"
    Queue.objects.filter(pk=own.pk).delete()
    letter = make_letter(installation.queue, tenant=tenant)
    assert "1 dead letter of it is in the index; replay or discard it" in refused()
    DeadLetter.objects.filter(pk=letter.pk).delete()
    assert f"stored in 1 topic, such as own.isolated.{tenant.id}.0; wait until retention" in refused()
    runtime.provider().admin().delete_topics([f"own.isolated.{tenant.id}.0"])
    delete_tenant(ADA, tenant)


# Queues of its own


def profile_of(tenant: Tenant, **fields: Any) -> TenantProfile:
    profile = create_profile(SYSTEM, name="small", **fields)
    change_tenant(SYSTEM, tenant, profile=profile)
    tenant.refresh_from_db()
    return profile


@pytest.mark.parametrize(
    ("fields", "options", "why"),
    [
        ({"max_queues": 1}, {}, "1 queues of its own are there, and 1 the most"),
        ({"max_partitions_per_queue": 2}, {"partitions": 3}, "partitions: use at most 2; 3 were asked for"),
        ({"partitions": 3}, {"partitions": 3}, "may have 3 together, and 1 of them are used"),
        ({"submit_strategies": ["SEQUENTIAL"]}, {}, "submit_strategy: BURST is not among SEQUENTIAL"),
        ({"processing_strategies": ["RETRY_ALL"]}, {}, "processing_strategy: SKIP_ALL_FAILURES is not among RETRY_ALL"),
    ],
)
def test_a_profile_limits_queues_of_ones_own_and_nobody_elses(installation, fields, options, why) -> None:
    tenant = installation.tenant
    own_queue(tenant, "First", partitions=1)
    profile_of(tenant, **fields)
    with pytest.raises(InvalidInput, match=f"{why}; tenant Greenhouse has profile small"):
        own_queue(tenant, "Second", **options)
    create_queue(SYSTEM, ensure_system_tenant(), name="Shared", topic="shared", handler="log", **options)


def test_a_tenants_own_word_on_partitions_goes_before_the_profiles(database, installation) -> None:
    profile_of(installation.tenant, partitions=1)
    change_tenant(SYSTEM, installation.tenant, partitions=4)
    own_queue(installation.tenant, partitions=4)
    with pytest.raises(InvalidInput, match="may have 4 together, and 4 of them are used"):
        own_queue(installation.tenant, "Second", partitions=1)


def test_a_queue_is_not_changed_to_a_strategy_that_its_profile_does_not_allow(installation) -> None:
    own = own_queue(installation.tenant)
    profile_of(installation.tenant, submit_strategies=["SEQUENTIAL"])
    assert change_queue(SYSTEM, own, retries=5).submit_strategy == "BURST"
    with pytest.raises(InvalidInput, match="submit_strategy: BATCH is not among SEQUENTIAL"):
        change_queue(SYSTEM, own, submit_strategy="BATCH")
    assert change_queue(SYSTEM, own, submit_strategy="SEQUENTIAL").submit_strategy == "SEQUENTIAL"


@pytest.mark.parametrize(
    ("fields", "kept_ms"),
    [({}, 7 * DAY_MS), ({"max_retention_ms": DAY_MS}, DAY_MS), ({"min_retention_ms": 30 * DAY_MS}, 30 * DAY_MS)],
)
def test_own_queues_keep_messages_as_long_as_the_profile_allows(installation, fields, kept_ms) -> None:
    tenant = installation.tenant
    profile_of(tenant, **fields)
    own = own_queue(tenant, partitions=1)
    topics = runtime.provider().admin().topics()
    assert topics[f"own.isolated.{tenant.id}.0"].retention_ms == kept_ms
    assert topics[own.letter_topic].retention_ms == 90 * DAY_MS
    assert topics["telemetry.0"].retention_ms == TopicSpec("telemetry.0").retention_ms


def test_services_are_found_by_the_profile_and_its_label(installation) -> None:
    profile = profile_of(installation.tenant, label="gold")
    own_queue(installation.tenant, partitions=1)
    own_queue(installation.tenant, "Other", partitions=1, label="gpu")
    found = {one.queue: (one.profile, one.label) for one in KnownPartitions().read() or ()}
    assert found == {"Own": (str(profile.id), "gold"), "Other": (str(profile.id), "gpu"), "Telemetry": ("", "")}
