"""Tenant profiles: created, changed, deleted; each can be planned first."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final
from uuid import UUID, uuid4

from django.apps import apps as all_apps
from django.db import router, transaction
from django.db.models import ProtectedError

from queueapi.actions.actor import Actor, audit
from queueapi.actions.row_checks import check_names, check_row, storing
from queueapi.admission import admission
from queueapi.change_plans import ChangePlan, difference, entered, plan_of_row, shown
from queueapi.errors import InvalidInput, NotChangeable
from queueapi.models import DEFAULT_PROFILE, TenantProfile
from queueapi.quotas import QUOTAS
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType

DEFAULT_NAME: Final = "default"
PROFILE_FIELDS: Final = (
    *("name", "description", "max_queues", "max_partitions_per_queue", "min_retention_ms", "max_retention_ms"),
    *("submit_strategies", "processing_strategies", "approves_isolation", "label"),
    *QUOTAS,
)


def plan_profile_creation(**fields: Any) -> ChangePlan:
    """What `create_profile` would do. InvalidInput as there."""
    profile = _new(fields)
    return plan_of_row(f"create profile {profile.name}", None, shown(profile, PROFILE_FIELDS))


def create_profile(actor: Actor, profile_id: UUID | None = None, **fields: Any) -> TenantProfile:
    """InvalidInput says what to enter instead."""
    profile = _new(fields, profile_id)
    with transaction.atomic():
        with storing(f"profile {profile.name}"):
            profile.save(force_insert=True)
        audit(actor, "create", "tenant_profile", profile.id, after=shown(profile, PROFILE_FIELDS))
    return profile


def plan_profile_change(profile: TenantProfile, **changes: Any) -> ChangePlan:
    """What `change_profile` would do now. InvalidInput as there."""
    before = TenantProfile.objects.get(pk=profile.pk)
    after = _changed(before, changes)
    names = difference(before, after, PROFILE_FIELDS)
    old, new = shown(before, names), shown(after, names)
    return plan_of_row(f"change profile {before.name}", old, new, _warnings(after, names))


def change_profile(actor: Actor, profile: TenantProfile, **changes: Any) -> TenantProfile:
    """The profile as it is then: its tenants' quotas follow within seconds, and queues that they have stay as they are.
    Without a difference nothing is written. InvalidInput says what to enter instead."""
    with transaction.atomic():
        before = TenantProfile.objects.select_for_update().get(pk=profile.pk)
        after = _changed(before, changes)
        if names := difference(before, after, PROFILE_FIELDS):
            with storing(f"profile {after.name}"):
                after.save(update_fields=[*names, "updated_at"])
            old, new = shown(before, names), shown(after, names)
            audit(actor, "change", "tenant_profile", after.id, before=old, after=new)
            transaction.on_commit(admission().look_again)
    return after


def plan_profile_deletion(profile: TenantProfile) -> ChangePlan:
    """What `delete_profile` would do now."""
    before, why_not = shown(profile, PROFILE_FIELDS), _why_not_deletable(profile)
    return plan_of_row(f"delete profile {profile.name}", before, None, why_not=why_not)


def delete_profile(actor: Actor, profile: TenantProfile) -> None:
    """NotChangeable while tenants have it, and always for the default one."""
    with transaction.atomic():
        kept = TenantProfile.objects.select_for_update().get(pk=profile.pk)
        if why_not := _why_not_deletable(kept):
            raise NotChangeable(why_not)
        try:
            kept.delete()
        except ProtectedError as error:
            raise NotChangeable(f"a tenant has just been given profile {kept.name}; look again") from error
        audit(actor, "delete", "tenant_profile", profile.pk, before=shown(profile, PROFILE_FIELDS))


def restore_default_profile(using: str = "default", apps: Any = all_apps, **_: Any) -> None:
    """Make it where it is missing, as in a database that was just emptied. For Django's `post_migrate`."""
    try:
        model = apps.get_model("queueapi", "TenantProfile")
    except LookupError:
        # The database was taken back to a time without profiles.
        return
    if router.allow_migrate_model(using, model):
        model.objects.using(using).get_or_create(id=DEFAULT_PROFILE, defaults={"name": DEFAULT_NAME})


def _new(fields: dict[str, Any], profile_id: UUID | None = None) -> TenantProfile:
    check_names("tenant profile", fields, PROFILE_FIELDS)
    profile = TenantProfile(id=profile_id or uuid4(), **fields)
    _check(profile)
    return profile


def _changed(before: TenantProfile, changes: dict[str, Any]) -> TenantProfile:
    check_names("tenant profile", changes, PROFILE_FIELDS)
    after = TenantProfile.objects.get(pk=before.pk)
    entered(after, changes)
    if after.is_default and after.name != before.name:
        raise InvalidInput(f"name: the default profile keeps its name {before.name!r}; create another one instead")
    _check(after)
    return after


def _check(profile: TenantProfile) -> None:
    for name, kinds in (("submit_strategies", SubmitStrategyType), ("processing_strategies", ProcessingStrategyType)):
        setattr(profile, name, _strategies(name, getattr(profile, name), kinds))
    check_row(profile)


def _strategies(name: str, given: Any, kinds: type[StrEnum]) -> list[str]:
    """In the order in which everybody lists them."""
    there_are = ", ".join(kinds)
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"{name}: give a list, empty for all there are: {there_are}")
    if unknown := next((each for each in given if each not in list(kinds)), None):
        raise InvalidInput(f"{name}: there is no {unknown!r}; choose from {there_are}")
    return [kind.value for kind in kinds if kind in given]


def _why_not_deletable(profile: TenantProfile) -> str:
    if profile.is_default:
        return "the default profile is always there, for tenants that have no other; change it instead"
    names = list(profile.tenants.order_by("name").values_list("name", flat=True)[:4])
    if not names:
        return ""
    more = f" and {profile.tenants.count() - 3} more" if len(names) > 3 else ""
    return f"tenants have profile {profile.name}: {', '.join(names[:3])}{more}; give them another profile first"


def _warnings(profile: TenantProfile, names: list[str]) -> Iterator[str]:
    if names and (count := profile.tenants.count()):
        yield f"{count:,} {'tenant has' if count == 1 else 'tenants have'} this profile, and it holds for them at once"
    if {*names} - {*QUOTAS, "name", "description", "approves_isolation", "label"}:
        yield "queues that tenants have already stay as they are"
    if "label" in names and profile.label:
        yield f"own queues of its tenants are consumed only by services with the label {profile.label!r}"
