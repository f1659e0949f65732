from typing import Any, Final, NoReturn

from django.conf import settings
from django.db import models

from queueapi.errors import AppendOnly

_WHY: Final = "the audit is never changed: what was written stays; write another entry that says what is right"


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def update(self, **_: Any) -> NoReturn:
        raise AppendOnly(_WHY)

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnly(_WHY)

    def delete(self) -> NoReturn:
        raise AppendOnly(_WHY)


class AuditEntry(models.Model):
    """Who changed what, from where, and what it was before. Never changed, never removed: AppendOnly here, and the
    database has triggers that refuse it as well.

    tenant_id   whose thing it was; None: the system's. It stays when the tenant is gone
    token       by which they were let in, if by one
    request_id  of the request that asked for it, if it was one that has an id
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    actor_name = models.CharField(max_length=150)
    token = models.ForeignKey("queueapi.ApiToken", null=True, on_delete=models.PROTECT, db_index=False)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=100, null=True)
    tenant_id = models.UUIDField(null=True)
    action = models.CharField(max_length=50)
    object_type = models.CharField(max_length=50)
    object_id = models.CharField(max_length=100, db_index=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["actor_name", "at"], name="audit_by_actor"),
            models.Index(fields=["action", "at"], name="audit_by_action"),
            models.Index(fields=["object_type", "at"], name="audit_by_object_type"),
            # Few entries have these: the others cost nothing here.
            *(
                models.Index(fields=[field, "at"], condition=models.Q(**{f"{field}__isnull": False}), name=name)
                for field, name in (("tenant_id", "audit_by_tenant"), ("token", "audit_by_token"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_type} {self.object_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly(_WHY)
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnly(_WHY)
