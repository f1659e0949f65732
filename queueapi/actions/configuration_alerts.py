"""Alert channels and rules of a configuration document, entered as `queueapi.actions.configuration_entries` does it."""

from collections.abc import Mapping
from typing import Any, Final

from queueapi.actions.actor import Actor
from queueapi.actions.alert_channels import change_channel, create_channel
from queueapi.actions.alert_rules import CHANGEABLE, CHANNEL_FIELDS, change_rule, create_rule
from queueapi.actions.configuration_checks import Entered, Values, check_fixed, check_needed, named
from queueapi.choices import AlertMetric
from queueapi.configuration.sections import ALERT_CHANNELS, ALERT_RULES, FIXED_OF_RULES
from queueapi.errors import InvalidInput
from queueapi.models import AlertChannel, AlertRule, Queue, Tenant
from queueapi.models.alert_rule import default_rule_id
from queueapi.names import unknown_name
from queueapi.selectors import configuration as told

_OTHER_RULE: Final = "alerts that are open are about that: keep it, or enter a rule of another name"


def enter_channel(actor: Actor, values: Mapping[str, Any]) -> Entered:
    row = AlertChannel.objects.filter(name__iexact=values["name"]).first()
    if row is None:
        check_needed(ALERT_CHANNELS, values)
        return Entered(None, told.channel_values(create_channel(actor, **values)))
    before, fields = told.channel_values(row), dict(values)
    kind = fields.pop("kind", row.kind)
    check_fixed(before, {"kind": kind}, "keep it, or enter a channel of another name")
    changed = change_channel(actor, row, **fields)
    after = told.channel_values(changed)
    is_secret = changed.version != row.version and after == before
    return Entered(before, after, secret_in="options" if is_secret else "")


def enter_rule(actor: Actor, values: Mapping[str, Any]) -> Entered:
    things = _things_named(values)
    row = _rule_meant(values)
    if row is None:
        check_needed(ALERT_RULES, values)
        fields = {name: value for name, value in values.items() if name != "is_default"}
        return Entered(
            None, told.rule_values(create_rule(actor, **{**fields, "tenant": None, "queue": None, **things}))
        )
    before = told.rule_values(row)
    check_fixed(before, _fixed(values, things), _OTHER_RULE)
    changes = {name: things.get(name, values[name]) for name in (*CHANGEABLE, *CHANNEL_FIELDS) if name in values}
    return Entered(before, told.rule_values(change_rule(actor, row, **changes)))


def _rule_meant(values: Mapping[str, Any]) -> AlertRule | None:
    """One that comes with the system by its metric, whatever it is called; any other by its name."""
    if not values.get("is_default"):
        return AlertRule.objects.filter(name__iexact=values["name"]).first()
    metric = values.get("metric")
    if metric not in AlertMetric.values:
        raise InvalidInput(f"metric: {unknown_name('metric', metric, AlertMetric.values)}")
    found = AlertRule.objects.filter(pk=default_rule_id(AlertMetric(metric))).first()
    if found is None:
        raise InvalidInput(f"is_default: no rule about {metric} comes with the system; leave it out")
    return found


def _things_named(values: Mapping[str, Any]) -> Values:
    """What the entry names, as it is here. A queue's tenant only says which queue is meant."""
    things: Values = {}
    if (tenant := values.get("tenant")) is not None:
        things["tenant"] = named("tenant", "tenant", Tenant.objects.all(), tenant)
    if (queue := values.get("queue")) is not None and "tenant" in things:
        things["queue"] = named("queue", "queue", Queue.objects.filter(tenant=things.pop("tenant")), queue)
    channels = AlertChannel.objects.all()
    for key in CHANNEL_FIELDS:
        if key in values:
            things[key] = [named(key, ALERT_CHANNELS.thing, channels, name) for name in values[key]]
    return things


def _fixed(values: Mapping[str, Any], things: Values) -> Values:
    """What the entry says of what it is about, with names as they are written here."""
    said = {name: values[name] for name in FIXED_OF_RULES if name in values}
    if "queue" in things:
        return {**said, "queue": things["queue"].name, "tenant": things["queue"].tenant.name}
    return {**said, "tenant": things["tenant"].name} if "tenant" in things else said
