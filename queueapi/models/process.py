from django.db import models

from queueapi.choices import ProcessState


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
