from typing import Final
from uuid import UUID

from django.db import models

from queueapi.choices import LetterState

# Whose letters are that name no tenant.
NOBODY: Final = UUID(int=0)


class DeadLetterGroup(models.Model):
    """A queue's letters of one error. Class and message are one letter's; the others' differ in numbers and ids.

    The counters are those of its tallies, summed: `queueapi.actions.letter_states` keeps both.
    """

    queue = models.ForeignKey("queueapi.Queue", on_delete=models.PROTECT, related_name="letter_groups", db_index=False)
    fingerprint = models.CharField(max_length=16)
    exception_class = models.CharField(max_length=500)
    exception_message = models.TextField()
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    letters = models.PositiveBigIntegerField(default=0)
    open_letters = models.PositiveBigIntegerField(default=0)
    note = models.TextField(blank=True, default="")
    noted_by = models.CharField(max_length=150, blank=True, default="")
    noted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-last_seen", "-id"]
        indexes = [
            models.Index(fields=["open_letters", "last_seen"], name="letter_group_by_open"),
            models.Index(fields=["last_seen"], name="letter_group_newest"),
            models.Index(fields=["fingerprint"], name="letter_group_by_fingerprint"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["queue", "fingerprint"], name="letter_group_once_per_queue"),
            models.CheckConstraint(
                condition=models.Q(open_letters__lte=models.F("letters")), name="letter_group_open_among_its_letters"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.exception_class}: {self.exception_message[:80]}"


class DeadLetterTally(models.Model):
    """How many letters of a group are a tenant's and in one state: counts of any size are read from here."""

    group = models.ForeignKey(DeadLetterGroup, on_delete=models.CASCADE, related_name="tallies", db_index=False)
    # NOBODY for letters without a tenant: a place in the index that is empty would be in it twice.
    tenant_id = models.UUIDField(default=NOBODY, db_index=True)
    state = models.CharField(max_length=16, choices=LetterState)
    letters = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["group", "tenant_id", "state"]
        verbose_name_plural = "dead letter tallies"
        constraints = [models.UniqueConstraint(fields=["group", "tenant_id", "state"], name="letter_tally_once")]

    def __str__(self) -> str:
        return f"{self.group_id} {self.tenant_id} {self.state}: {self.letters}"
