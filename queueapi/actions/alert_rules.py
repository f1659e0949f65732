"""Alert rules: created, changed, deleted. Those that come with the system are changed, or switched off."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.apps import apps as all_apps
from django.db import router, transaction
from django.db.models import F, Value

from queueapi.actions.actor import Actor, audit
from queueapi.actions.alert_scopes import check_tenant
from queueapi.actions.row_checks import check_names, check_row, storing
from queueapi.alerting.defaults import DEFAULT_RULES
from queueapi.change_plans import difference, entered, shown
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import AlertChannel, AlertRule

RULE_FIELDS: Final = (
    *("name", "description", "metric", "severity", "enabled", "threshold", "resolve_at", "for_s", "resolve_for_s"),
    *("tenant", "queue", "request_topic", "escalate_after_s"),
)
CHANNEL_FIELDS: Final = ("channels", "escalation_channels")
# What it is about never changes: alerts that are open are about that.
CHANGEABLE: Final = tuple(name for name in RULE_FIELDS if name not in ("metric", "tenant", "queue", "request_topic"))
_ESCALATION: Final = frozenset({"escalate_after_s", "escalation_channels"})

_Told = dict[str, Any] | None


def create_rule(actor: Actor, **fields: Any) -> AlertRule:
    """InvalidInput says what to enter instead."""
    check_names("rule", fields, (*RULE_FIELDS, *CHANNEL_FIELDS))
    rule = AlertRule(**{name: value for name, value in fields.items() if name not in CHANNEL_FIELDS})
    check_row(rule)
    check_tenant(rule.tenant)
    with transaction.atomic():
        with storing(f"rule {rule.name}"):
            rule.save(force_insert=True)
        _set_channels(rule, fields)
        _check_escalation(rule)
        _audit(actor, "create", rule, None, told(rule))
    return rule


def change_rule(actor: Actor, rule: AlertRule, **changes: Any) -> AlertRule:
    """The rule as it is then, which the next evaluation goes by. Without a difference nothing is written. InvalidInput
    says what to enter instead."""
    check_names("rule", changes, (*CHANGEABLE, *CHANNEL_FIELDS))
    with transaction.atomic():
        before = AlertRule.objects.select_for_update(of=("self",)).get(pk=rule.pk)
        after, old = AlertRule.objects.get(pk=rule.pk), told(before)
        entered(after, {name: value for name, value in changes.items() if name not in CHANNEL_FIELDS})
        check_row(after)
        if names := difference(before, after, CHANGEABLE):
            with storing(f"rule {after.name}"):
                after.save(update_fields=names)
        _set_channels(after, changes)
        if not _ESCALATION.isdisjoint(changes):
            _check_escalation(after)
        new = told(after)
        if differing := [name for name in new if old[name] != new[name]]:
            AlertRule.objects.filter(pk=after.pk).update(version=F("version") + 1)
            after.refresh_from_db(fields=["version"])
            old, new = ({name: values[name] for name in differing} for values in (old, new))
            _audit(actor, "change", after, old, new)
    return after


def delete_rule(actor: Actor, rule: AlertRule) -> None:
    """Its open alerts resolve with the next evaluation. NotChangeable for one that comes with the system."""
    with transaction.atomic():
        rules = AlertRule.objects.select_related("tenant", "queue")
        kept = rules.select_for_update(of=("self",)).get(pk=rule.pk)
        if kept.is_default:
            raise NotChangeable(f"rule {kept.name} comes with the system, and would come back; set enabled to false")
        _audit(actor, "delete", kept, told(kept), None)
        kept.delete()


def restore_default_rules(using: str = "default", apps: Any = all_apps, **_: Any) -> None:
    """Make those that are missing, as in a database that was just made or emptied. For Django's `post_migrate`."""
    try:
        model = apps.get_model("queueapi", "AlertRule")
        evaluation = apps.get_model("queueapi", "AlertEvaluation")
    except LookupError:
        # The database was taken back to a time without alerts.
        return
    if router.allow_migrate_model(using, model):
        model.objects.using(using).bulk_create([model(**fields) for fields in DEFAULT_RULES], ignore_conflicts=True)
        evaluation.objects.using(using).get_or_create(id=1)


def told(rule: AlertRule) -> dict[str, Any]:
    """As the audit has it, with its channels by their names."""
    channels: dict[str, list[str]] = {name: [] for name in CHANNEL_FIELDS}
    for field, channel in _channels_of(rule) if rule.pk else ():
        channels[field].append(channel)
    return {**shown(rule, RULE_FIELDS), **channels}


def _channels_of(rule: AlertRule) -> list[tuple[str, str]]:
    """By field and name, all of them asked for at once."""
    first, *others = (getattr(rule, name).order_by().values_list(Value(name), "name") for name in CHANNEL_FIELDS)
    return sorted(first.union(*others, all=True))


def _set_channels(rule: AlertRule, fields: Mapping[str, Iterable[AlertChannel]]) -> None:
    for name in CHANNEL_FIELDS:
        if name in fields:
            getattr(rule, name).set(fields[name])


def _check_escalation(rule: AlertRule) -> None:
    """InvalidInput for one of the two without the other, which would do nothing."""
    has_channels = rule.escalation_channels.exists()
    if has_channels and rule.escalate_after_s is None:
        raise InvalidInput("escalate_after_s: say after how many seconds escalation_channels are told, or name none")
    if rule.escalate_after_s is not None and not has_channels:
        raise InvalidInput("escalation_channels: name who is told after escalate_after_s, or leave that out")


def _audit(actor: Actor, action: str, rule: AlertRule, before: _Told, after: _Told) -> None:
    """Channels are the installation's: who is told has an entry of its own, which is no tenant's to read."""
    own, channels = ([_part(each, names) for each in (before, after)] for names in (RULE_FIELDS, CHANNEL_FIELDS))
    if any(own):
        audit(actor, action, "alert_rule", rule.id, tenant_id=_whose(rule), before=own[0], after=own[1])
    if any(each and any(each.values()) for each in channels):
        audit(actor, action, "alert_rule", rule.id, before=channels[0], after=channels[1])


def _part(each: _Told, names: Iterable[str]) -> _Told:
    return None if each is None else {name: each[name] for name in names if name in each}


def _whose(rule: AlertRule) -> Any:
    return rule.queue.tenant_id if rule.queue is not None else rule.tenant_id
