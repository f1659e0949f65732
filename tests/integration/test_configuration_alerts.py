"""Alert channels and rules in the configuration document: by name, without secrets, with what they are about."""

from typing import Any

import pytest

from queueapi.actions.actor import SYSTEM
from queueapi.actions.alert_channels import create_channel
from queueapi.actions.configuration import import_configuration, plan_configuration
from queueapi.alerting.defaults import DEFAULT_RULES
from queueapi.choices import QueueState
from queueapi.configuration.yaml_reading import read_yaml
from queueapi.configuration.yaml_writing import write_yaml
from queueapi.models import AlertChannel, AlertRule, AuditEntry, Queue
from queueapi.selectors.configuration import configuration, hidden_versions
from tests.integration.configuration_kit import HOOK, empty_database, entry, exported, furnish, problems_of
from tests.rest_kit import World, differences, snapshot

ANOTHER = "another-one-for-a-signature-0123"


@pytest.fixture
def world(installation) -> World:
    return World(installation)


@pytest.fixture
def furnished(world) -> World:
    """With a channel that has secrets."""
    furnish()
    create_channel(SYSTEM, name="Pager", kind="webhook", options=HOOK, enabled=False)
    return world


def alerts(channels: list[Any] | None = None, rules: list[Any] | None = None) -> dict[str, Any]:
    return {"format": 1, "alert_channels": channels or [], "alert_rules": rules or []}


def pager() -> AlertChannel:
    return AlertChannel.objects.get(name="Pager")


# --- what there is


def test_an_export_has_channels_and_rules_with_names_of_what_they_are_about(furnished) -> None:
    document = exported()
    assert [one["name"] for one in document["alert_channels"]] == ["Boss", "on call", "Pager"]
    assert entry(document, "alert_channels", "on call") == {
        "name": "on call",
        "kind": "email",
        "options": {"recipients": ["ada@example.org"]},
        "enabled": True,
    }
    assert len(document["alert_rules"]) == len(DEFAULT_RULES) + 3
    orders = entry(document, "alert_rules", "Orders wait")
    assert list(orders)[:2] == ["name", "is_default"]
    assert (orders["tenant"], orders["queue"], orders["request_topic"]) == ("Foundry", "Orders", "")
    assert (orders["channels"], orders["escalation_channels"]) == (["on call"], ["Boss", "on call"])
    assert (orders["is_default"], orders["threshold"], orders["escalate_after_s"]) == (False, 60.5, 600)
    fails = entry(document, "alert_rules", "foundry fails")
    assert (fails["tenant"], fails["queue"], fails["enabled"]) == ("Foundry", None, False)
    assert entry(document, "alert_rules", "Asks")["request_topic"] == "tb_transport.requests"
    assert entry(document, "alert_rules", "Old figures")["is_default"] is True


def test_a_rule_about_a_queue_that_is_being_deleted_is_left_out_with_it(furnished) -> None:
    Queue.objects.filter(name="Orders").update(state=QueueState.DELETING)
    names = [one["name"] for one in exported()["alert_rules"]]
    assert "Orders wait" not in names
    assert "foundry fails" in names


def test_they_come_back_into_an_emptied_database_once_secrets_are_entered(furnished) -> None:
    text = write_yaml(configuration())
    document = read_yaml(text, 64)
    empty_database()
    [place] = problems_of(document)
    [why] = problems_of(document)[place]
    assert place == "alert_channels[2].options"
    assert "'secret', 'url' came back hidden" in why
    entry(document, "alert_channels", "Pager")["options"] = HOOK
    import_configuration(SYSTEM, document)
    assert write_yaml(configuration()) == text
    assert pager().options == HOOK
    assert AlertRule.objects.count() == len(DEFAULT_RULES) + 3
    assert import_configuration(SYSTEM, read_yaml(text, 64)).changes == []


# --- what an import does


def test_what_is_new_is_made_and_audited(furnished) -> None:
    last = AuditEntry.objects.latest("id").id
    channels = [{"name": "Chat", "kind": "slack", "options": {"url": "https://hooks.example.org/services/T0"}}]
    rules = [
        {"name": "Zulu waits", "metric": "lag_messages", "threshold": 7, "tenant": "SYSTEM", "queue": "zulu"},
        {"name": "All wait", "metric": "lag_messages", "threshold": 9, "channels": ["chat"]},
    ]
    document = alerts(channels, rules)
    before = snapshot(furnished)
    plan = plan_configuration(SYSTEM, document)
    assert differences(before, snapshot(furnished)) == []
    done = import_configuration(SYSTEM, document)
    assert (done.summary, done.changes) == (plan.summary, plan.changes)
    assert done.summary == "create 1 alert channel, 2 alert rules"
    assert "/services/T0" not in str(done.changes)
    zulu = AlertRule.objects.get(name="Zulu waits")
    assert (zulu.queue, zulu.tenant) == (Queue.objects.get(name="Zulu"), None)
    assert [channel.name for channel in AlertRule.objects.get(name="All wait").channels.all()] == ["Chat"]
    entries = AuditEntry.objects.filter(id__gt=last).order_by("id")
    assert [(one.action, one.object_type) for one in entries] == [
        ("create", "alert_channel"),
        ("create", "alert_rule"),
        ("create", "alert_rule"),
        ("create", "alert_rule"),
        ("import", "configuration"),
    ]
    assert entries[4].after == {"created": {"alert channel": 1, "alert rule": 2}, "changed": {}}
    assert import_configuration(SYSTEM, document).changes == []


def test_what_differs_is_changed_and_what_is_left_out_stays(furnished) -> None:
    rules = [{"name": "orders wait", "threshold": 90, "channels": ["Pager", "on call"]}]
    plan = import_configuration(SYSTEM, alerts([{"name": "Pager", "enabled": True}], rules))
    assert {change.what: (change.before, change.after) for change in plan.changes} == {
        "alert channel Pager: enabled": (False, True),
        "alert rule orders wait: name": ("Orders wait", "orders wait"),
        "alert rule orders wait: threshold": (60.5, 90.0),
        "alert rule orders wait: channels": (["on call"], ["Pager", "on call"]),
    }
    rule = AlertRule.objects.get(name="orders wait")
    assert (rule.escalate_after_s, rule.escalation_channels.count()) == (600, 2)
    assert pager().options == HOOK


def test_a_rule_that_comes_with_the_system_is_known_by_its_metric(furnished) -> None:
    rules = [{"name": "Figures", "is_default": True, "metric": "pipeline_late", "threshold": 200}]
    changes = [change.what for change in import_configuration(SYSTEM, alerts(rules=rules)).changes]
    assert changes == ["alert rule Figures: name", "alert rule Figures: threshold"]
    assert AlertRule.objects.filter(metric="pipeline_late").count() == 1
    by_name = [{"name": "figures", "severity": "info"}]
    import_configuration(SYSTEM, alerts(rules=by_name))
    assert AlertRule.objects.get(metric="pipeline_late").severity == "info"


# --- secrets


def test_a_secret_of_a_channel_never_leaves_and_one_that_comes_back_hidden_stays(furnished) -> None:
    text = write_yaml(configuration())
    assert HOOK["secret"] not in text
    assert "/orders" not in text
    document = read_yaml(text, 64)
    entry(document, "alert_channels", "Pager")["enabled"] = True
    import_configuration(SYSTEM, document)
    assert pager().options == HOOK


def test_a_secret_that_is_given_is_taken_and_told_without_showing_it(furnished) -> None:
    versions = hidden_versions()
    document = exported()
    entry(document, "alert_channels", "Pager")["options"] = {**HOOK, "secret": ANOTHER}
    [change] = import_configuration(SYSTEM, document).changes
    assert change.what == "alert channel Pager: a secret of options"
    assert "signature" not in str(change)
    assert pager().options["secret"] == ANOTHER
    assert hidden_versions() != versions
    assert import_configuration(SYSTEM, document).changes == []


def test_a_hidden_secret_does_not_follow_to_another_host(furnished) -> None:
    document = exported()
    channel = entry(document, "alert_channels", "Pager")
    channel["options"]["url"] = "https://elsewhere.example.org/orders"
    [why] = problems_of(document)["alert_channels[2].options"]
    assert "secret" in why
    assert HOOK["secret"] not in why
    assert pager().options == HOOK


# --- what is refused


def test_all_problems_are_told_each_at_its_place(furnished) -> None:
    channels = [
        {"name": "new"},
        {"name": "Pager", "kind": "slack"},
        {"name": "mail", "kind": "email", "options": {"recipients": ["nobody"]}},
        {"name": "bird", "kind": "pigeon", "options": {}},
        {"name": "loud", "kind": "slack", "options": "s3cret"},
    ]
    rules = [
        {"name": "empty"},
        {"name": "Orders wait", "metric": "lag_messages", "tenant": "Greenhouse"},
        {"name": "Asks", "is_default": True, "metric": "lag_minutes"},
        {"name": "Old figures", "is_default": False},
        {"name": "whose", "metric": "lag_seconds", "threshold": 1, "queue": "Zulu"},
        {"name": "which", "metric": "lag_seconds", "threshold": 1, "tenant": "System", "queue": "Zul"},
        {"name": "who", "metric": "lag_seconds", "threshold": 1, "channels": ["Pagr"]},
        {"name": "huge", "metric": "lag_seconds", "threshold": 10**400},
        {"name": "meant", "is_default": True},
        {"name": "alone", "metric": "lag_seconds", "threshold": 1, "escalate_after_s": 5},
        # Of what is not there because of a problem above nothing more is told.
        {"name": "orphan", "metric": "lag_seconds", "threshold": 1, "channels": ["MAIL"]},
    ]
    before = snapshot(furnished)
    found = problems_of(alerts(channels, rules))
    assert differences(before, snapshot(furnished)) == []
    assert "s3cret" not in str(found)
    never = "and never changes; alerts that are open are about that: keep it, or enter a rule of another name"
    [metrics] = found.pop("alert_rules[2].metric")
    assert metrics.startswith("there is no metric 'lag_minutes'; did you mean")
    [recipient] = found.pop("alert_channels[2].options")
    assert "'nobody' is no e-mail address" in recipient
    assert found == {
        "alert_channels[0].kind": ["a new alert channel needs this"],
        "alert_channels[0].options": ["a new alert channel needs this"],
        "alert_channels[1].kind": ["it is 'webhook', and never changes; keep it, or enter a channel of another name"],
        "alert_channels[3].kind": ["there is no 'pigeon'; choose one of email, webhook, slack"],
        "alert_channels[4].options": ["this cannot be; give an object, {} for nothing"],
        "alert_rules[0].metric": ["a new alert rule needs this"],
        "alert_rules[0].threshold": ["a new alert rule needs this"],
        "alert_rules[1].metric": [f"it is 'lag_seconds', {never}"],
        "alert_rules[1].tenant": [f"it is 'Foundry', {never}"],
        "alert_rules[3].is_default": [f"it is True, {never}"],
        "alert_rules[4].tenant": ["say whose queue it is; those that tenants share are the system's"],
        "alert_rules[5].queue": ["there is no queue 'Zul'; did you mean Zulu?"],
        "alert_rules[6].channels": ["there is no alert channel 'Pagr'; did you mean Pager?"],
        "alert_rules[7].threshold": [f"{'1' + 59 * '0'}… cannot be; give a number"],
        "alert_rules[8].metric": ["this says which of the rules that come with the system is meant; give it"],
        "alert_rules[9].escalation_channels": ["name who is told after escalate_after_s, or leave that out"],
    }


def test_a_rule_of_something_that_has_a_problem_is_no_second_problem(furnished) -> None:
    document = {
        "format": 1,
        "tenants": [{"name": "Harbour", "profile": "glod"}],
        "queues": [{"tenant": "System", "name": "Q", "topic": "q", "handler": "log", "partitions": 5000}],
        "alert_rules": [
            {"name": "a", "metric": "lag_seconds", "threshold": 1, "tenant": "Harbour"},
            {"name": "b", "metric": "lag_seconds", "threshold": 1, "tenant": "System", "queue": "Q"},
        ],
    }
    assert list(problems_of(document)) == ["tenants[0].profile", "queues[0].partitions"]
