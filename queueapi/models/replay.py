import uuid

from django.db import models

from queueapi.choices import OperationState, ReplayItemState


class Replay(models.Model):
    """Dead letters that are sent again. Its operation says how far it is, its items what became of each letter."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    operation = models.OneToOneField("queueapi.Operation", on_delete=models.PROTECT, related_name="replay")
    # What was chosen: a `LetterFilter`, or `{"letters": [...]}`.
    filter = models.JSONField(default=dict)
    # None: each letter's own queue.
    target = models.ForeignKey("queueapi.Queue", null=True, on_delete=models.PROTECT, related_name="replays")
    # None: as fast as it goes.
    rate_per_s = models.FloatField(null=True)
    # After so many letters in all it waits for the outcome of each; what follows the last step is sent at once.
    ramp = models.JSONField(default=list)
    # It is aborted when more than this share of the outcomes, and at least `abort_min`, failed again. None: never.
    abort_ratio = models.FloatField(null=True)
    abort_min = models.PositiveIntegerField(default=10)
    max_replays = models.PositiveIntegerField(default=5)
    sent = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    # Whether all that was chosen is among its items: a filter may choose more than one transaction should take.
    is_collected = models.BooleanField(default=False)

    class Meta:
        ordering = ["-operation__created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(rate_per_s__isnull=True) | models.Q(rate_per_s__gt=0), name="replay_rate_above_0"
            ),
            models.CheckConstraint(
                condition=models.Q(abort_ratio__isnull=True) | models.Q(abort_ratio__gt=0, abort_ratio__lte=1),
                name="replay_abort_ratio_in_range",
            ),
        ]

    def __str__(self) -> str:
        return str(self.operation)

    @property
    def state_choice(self) -> OperationState:
        return self.operation.state_choice


class ReplayItem(models.Model):
    """One letter of a replay. `sequence` counts from 0 in the order in which the letters failed."""

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="items", db_index=False)
    # Found by the constraint that begins with it.
    letter = models.ForeignKey(
        "queueapi.DeadLetter", on_delete=models.CASCADE, related_name="replay_items", db_index=False
    )
    sequence = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=ReplayItemState, default=ReplayItemState.PENDING)
    sent_at = models.DateTimeField(null=True)
    # Why it was skipped.
    reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["replay", "sequence"]
        constraints = [
            models.UniqueConstraint(fields=["replay", "sequence"], name="replay_item_in_sequence"),
            models.UniqueConstraint(fields=["letter", "replay"], name="replay_item_once_per_letter"),
        ]

    def __str__(self) -> str:
        return f"{self.replay_id} {self.sequence}: {self.state}"

    @property
    def state_choice(self) -> ReplayItemState:
        return ReplayItemState(self.state)


class ReplayChunk(models.Model):
    """The letters of a replay that are on their way: the row is there before the first is sent, and until all that were
    acknowledged are noted. `end_offsets` are the targets' before: after a crash, what arrived is found from there."""

    replay = models.OneToOneField(Replay, primary_key=True, on_delete=models.CASCADE, related_name="chunk")
    first_sequence = models.PositiveIntegerField()
    last_sequence = models.PositiveIntegerField()
    # `[topic, partition, offset]` of each.
    end_offsets = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(last_sequence__gte=models.F("first_sequence")), name="replay_chunk_not_empty"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.replay_id} {self.first_sequence}-{self.last_sequence}"
