import uuid

from django.db import models
from django.db.models.functions import Lower

from queuecore.topics import SYSTEM_TENANT


class Tenant(models.Model):
    """Whose messages these are. The system tenant owns the queues that everyone shares."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(Lower("name"), name="tenant_name_unique")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_system(self) -> bool:
        return self.id == SYSTEM_TENANT
