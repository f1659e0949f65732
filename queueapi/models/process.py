from django.db import models
from django.utils import timezone

from queueapi.choices import ProcessState


class ServiceInstance(models.Model):
    """A running process that hosts consumers. Its lease says until when the others believe in it."""

    service_id = models.CharField(max_length=100, primary_key=True)
    service_types = models.JSONField()
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    partitions = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["service_id"]

    def __str__(self) -> str:
        return self.service_id

    @property
    def is_alive(self) -> bool:
        return self.lease_expires_at > timezone.now()


class ManagedProcess(models.Model):
    """A child of `manage.py up`, as its parent last saw it."""

    name = models.CharField(max_length=50, primary_key=True)
    pid = models.PositiveIntegerField(null=True)
    state = models.CharField(max_length=16, choices=ProcessState)
    restarts = models.PositiveIntegerField(default=0)
    last_exit = models.CharField(max_length=200, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "managed processes"

    def __str__(self) -> str:
        return self.name

    @property
    def state_choice(self) -> ProcessState:
        return ProcessState(self.state)
