"""The people who sign in."""

from django.contrib.auth.models import User
from django.db import transaction

from queueapi.actions.actor import SYSTEM, audit


def ensure_administrator(name: str, password: str) -> User:
    """The first administrator. One that exists keeps the password they may have chosen since."""
    existing = User.objects.filter(username=name).first()
    if existing:
        return existing
    with transaction.atomic():
        user = User.objects.create_superuser(name, password=password)
        audit(SYSTEM, "create", "user", user.pk, after={"name": name, "administrator": True})
    return user
