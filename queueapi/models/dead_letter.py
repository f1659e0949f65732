import uuid

from django.db import models

from queueapi.choices import REPLAYABLE_LETTER_STATES, LetterState


class DeadLetter(models.Model):
    """A message given up on, with its story. The dead-letter topic holds the original; this is its index."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    queue = models.ForeignKey("queueapi.Queue", on_delete=models.PROTECT, related_name="dead_letters")
    tenant = models.ForeignKey("queueapi.Tenant", null=True, on_delete=models.PROTECT, related_name="dead_letters")
    state = models.CharField(max_length=16, choices=LetterState, default=LetterState.OPEN)

    letter_topic = models.CharField(max_length=249)
    letter_partition = models.PositiveIntegerField()
    letter_offset = models.PositiveBigIntegerField()

    topic = models.CharField(max_length=249)
    partition = models.PositiveIntegerField()
    offset = models.PositiveBigIntegerField()
    sent_at = models.DateTimeField()
    key = models.UUIDField(null=True)
    raw_key = models.BinaryField(null=True)
    headers = models.JSONField(default=dict)
    payload = models.BinaryField()

    handler = models.CharField(max_length=100)
    consumer_group = models.CharField(max_length=249)
    reason = models.CharField(max_length=50)
    exception_class = models.CharField(max_length=200)
    exception_message = models.TextField()
    stack_trace = models.TextField()
    fingerprint = models.CharField(max_length=16, db_index=True)
    attempts = models.PositiveIntegerField()
    first_failed_at = models.DateTimeField()
    failed_at = models.DateTimeField(db_index=True)

    replay = models.ForeignKey("queueapi.Operation", null=True, on_delete=models.SET_NULL, related_name="letters")
    replay_sent_at = models.DateTimeField(null=True)
    replay_of = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="failed_replays")
    state_changed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-failed_at", "-id"]
        indexes = [models.Index(fields=["state", "-failed_at"]), models.Index(fields=["queue", "state"])]
        constraints = [
            models.UniqueConstraint(
                fields=["letter_topic", "letter_partition", "letter_offset"], name="dead_letter_indexed_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.topic} offset {self.offset}"

    @property
    def state_choice(self) -> LetterState:
        return LetterState(self.state)

    @property
    def is_replayable(self) -> bool:
        return self.state in REPLAYABLE_LETTER_STATES
