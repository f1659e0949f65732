"""The people who sign in: who they are, and what they are here to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Model, Q, QuerySet

from queueapi.access.principals import role_of
from queueapi.actions.actor import SYSTEM, Actor, audit
from queueapi.actions.sign_ins import locked_until, record_failure
from queueapi.change_plans import Change, ChangePlan
from queueapi.choices import Role
from queueapi.errors import InvalidInput, LastAdministrator, NotAllowed
from queueapi.locking import row_locked
from queueapi.models import Account, Tenant


def create_user(actor: Actor, name: str, password: str, role: Role, tenant: Tenant | None = None) -> User:
    """Somebody who can sign in at once. InvalidInput says what to enter instead."""
    user = User(username=name)
    _check_tenant(role, tenant)
    _check(user, password)
    user.set_password(password)
    with transaction.atomic():
        _insert(user)
        account = Account.objects.create(user=user, role=role, tenant=tenant)
        _audit(actor, "create", user, account, after={"name": name, **_told(account)})
    return user


def set_user_role(actor: Actor, user: User, role: Role, tenant: Tenant | None = None) -> Account:
    """Let somebody do more, less or other things, from their next request on. LastAdministrator where nobody else could
    let people in then; InvalidInput for a tenant where there is none to name, or none where there is."""
    _check_tenant(role, tenant)
    with transaction.atomic():
        lock_administrators()
        before = Account.objects.filter(user=user).first()
        if role != Role.ADMINISTRATOR:
            _check_not_last(user)
        account, _ = Account.objects.update_or_create(user=user, defaults={"role": role, "tenant": tenant})
        if before is None or _told(before) != _told(account):
            told = None if before is None else _told(before)
            _audit(actor, "set_role", user, account, before=told, after=_told(account))
    return account


def set_user_password(actor: Actor, user: User, password: str) -> None:
    """Give somebody another password, which ends all their sessions. InvalidInput says what makes a better one."""
    _check(user, password)
    with transaction.atomic():
        locked = User.objects.select_for_update().get(pk=user.pk)
        locked.set_password(password)
        locked.save(update_fields=["password"])
        _audit(actor, "set_password", user, _account_of(user))
    user.password = locked.password


def change_own_password(actor: Actor, current: str, password: str) -> User:
    """As `set_user_password`, of who acts, and knows the one they have: a wrong one counts as at sign-in. NotAllowed
    for who was let in by a token: whoever finds one must not become its maker."""
    user = _who_knows(actor, current)
    set_user_password(actor, user, password)
    return user


def plan_own_password(actor: Actor, current: str, password: str) -> ChangePlan:
    """What `change_own_password` would do. A wrong one counts here as well: else it could be guessed by plans."""
    user = _who_knows(actor, current)
    _check(user, password)
    warning = "all other sessions end"
    return ChangePlan(f"set password of user {user.pk}", (Change("password", "********", "********"),), (warning,))


def _who_knows(actor: Actor, current: str) -> User:
    """Who acts, if that is their password."""
    if actor.user is None or actor.token_id is not None:
        raise NotAllowed("a token changes no password; sign in with the one you have")
    user = User.objects.get(pk=actor.user.pk)
    is_locked = locked_until(user.username, actor.address) is not None
    if is_locked or not user.check_password(current):
        record_failure(user.username, actor.address)
        raise InvalidInput("current: this is not your password, or too many were wrong; wait, or ask an administrator")
    return user


def set_user_active(actor: Actor, user: User, *, active: bool) -> None:
    """Let somebody in no more, neither by password nor by session nor by token; or let them in again.
    LastAdministrator where nobody could then."""
    with transaction.atomic():
        lock_administrators()
        if not active:
            _check_not_last(user)
        if User.objects.filter(pk=user.pk, is_active=not active).update(is_active=active):
            _audit(actor, "activate" if active else "deactivate", user, _account_of(user))
    user.is_active = active


def ensure_administrator(name: str, password: str) -> User:
    """The first administrator. One that exists keeps the password they may have chosen since."""
    existing = User.objects.filter(username=name).first()
    if existing:
        return existing
    with transaction.atomic():
        user = User.objects.create_superuser(name, password=password)
        account = Account.objects.create(user=user, role=Role.ADMINISTRATOR)
        _audit(SYSTEM, "create", user, account, after={"name": name, **_told(account)})
    return user


def administrators() -> QuerySet[User]:
    """Who can let people in."""
    without_account = Q(account__isnull=True, is_superuser=True)
    return User.objects.filter(Q(account__role=Role.ADMINISTRATOR) | without_account, is_active=True)


def lock_administrators() -> None:
    """Of two who make less of each other at once, the second sees what the first has done."""
    list(Account.objects.select_for_update().filter(role=Role.ADMINISTRATOR).order_by("pk").values_list("pk"))


@contextmanager
def user_locked(user: Model) -> Iterator[None]:
    """A transaction in which nobody else changes them. Administrators before anybody, as in all of these."""
    with transaction.atomic():
        lock_administrators()
        with row_locked(user):
            yield


def _check_not_last(user: User) -> None:
    standing = role_of(User.objects.select_related("account").get(pk=user.pk))
    is_one = standing is not None and standing[0] == Role.ADMINISTRATOR
    if is_one and not administrators().exclude(pk=user.pk).exists():
        raise LastAdministrator(
            f"{user.get_username()} is the last administrator, without whom nobody could let anybody in; make somebody "
            "else one first"
        )


def _insert(user: User) -> None:
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidInput(f"somebody else has just created a user {user.username}; choose another name") from error


def _check_tenant(role: Role, tenant: Tenant | None) -> None:
    if role.is_of_tenant and (tenant is None or tenant.is_system):
        raise InvalidInput(f"a {role.label.lower()} is of one tenant; name it, and not the system's")
    if not role.is_of_tenant and tenant is not None:
        raise InvalidInput(f"the role {role} is for the whole system; leave the tenant out, or choose a tenant's role")


def _check(user: User, password: str) -> None:
    try:
        user.full_clean(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        told = error.message_dict if hasattr(error, "error_dict") else {"password": error.messages}
        raise InvalidInput("; ".join(error.messages), fields=told) from error


def _account_of(user: User) -> Account | None:
    return Account.objects.filter(user=user).first()


def _audit(actor: Actor, action: str, user: User, account: Account | None, **told: Any) -> None:
    tenant_id = None if account is None else account.tenant_id
    audit(actor, action, "user", user.pk, tenant_id=tenant_id, **told)


def _told(account: Account) -> dict[str, Any]:
    tenant = str(account.tenant_id) if account.tenant_id else None
    return {"role": account.role, "tenant": tenant}
