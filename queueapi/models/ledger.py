from django.conf import settings
from django.db import models

from queueapi.choices import LedgerAction


class LedgerEntry(models.Model):
    """Who did what to which letters, and why. Never changed, and kept when the letters are gone.

    `letter` is set where it was one, `group` where it was a group as such; what else was chosen is in `after`.
    """

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    actor_name = models.CharField(max_length=150)
    action = models.CharField(max_length=16, choices=LedgerAction)
    # The ids stay when what they name is gone.
    letter = models.ForeignKey(
        "queueapi.DeadLetter", null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="ledger"
    )
    group = models.ForeignKey(
        "queueapi.DeadLetterGroup", null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="ledger"
    )
    replay = models.ForeignKey(
        "queueapi.Replay", null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="ledger"
    )
    count = models.PositiveIntegerField(default=1)
    reason = models.TextField(blank=True, default="")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["at"], name="ledger_newest")]
        verbose_name_plural = "ledger entries"

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.count}"

    @property
    def action_choice(self) -> LedgerAction:
        return LedgerAction(self.action)
