import uuid

from django.db import models

from queueapi.choices import LetterState


class DeadLetter(models.Model):
    """A message given up on, with its story. The dead-letter topic holds the original; this is its index.

    What only a letter's own page shows is in its `body`, so that lists read small rows. Its state is changed by
    `queueapi.actions.letter_states` alone, which counts along.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    queue = models.ForeignKey("queueapi.Queue", on_delete=models.PROTECT, related_name="dead_letters", db_index=False)
    tenant = models.ForeignKey(
        "queueapi.Tenant", null=True, on_delete=models.PROTECT, related_name="dead_letters", db_index=False
    )
    group = models.ForeignKey(
        "queueapi.DeadLetterGroup", on_delete=models.PROTECT, related_name="members", db_index=False
    )
    state = models.CharField(max_length=16, choices=LetterState, default=LetterState.OPEN)
    state_changed_at = models.DateTimeField(auto_now_add=True)

    letter_topic = models.CharField(max_length=249)
    letter_partition = models.PositiveIntegerField()
    letter_offset = models.PositiveBigIntegerField()

    topic = models.CharField(max_length=249)
    partition = models.PositiveIntegerField()
    offset = models.PositiveBigIntegerField()
    sent_at = models.DateTimeField()
    key = models.UUIDField(null=True)
    raw_key = models.BinaryField(null=True)
    payload_size = models.PositiveBigIntegerField(default=0)
    # Why the payload is not here, where it was too large for the topic and its side store has lost it.
    payload_missing = models.CharField(max_length=500, blank=True, default="")
    is_edited = models.BooleanField(default=False)

    origin = models.CharField(max_length=32, default="switchyard")
    service = models.CharField(max_length=100, blank=True, default="")
    handler = models.CharField(max_length=100)
    consumer_group = models.CharField(max_length=249)
    # That of the assignment under which its consumer had the partition, where it had one.
    epoch = models.PositiveBigIntegerField(null=True)
    stage = models.CharField(max_length=16, blank=True, default="")
    reason = models.CharField(max_length=50)
    exception_class = models.CharField(max_length=500)
    exception_message = models.TextField()
    fingerprint = models.CharField(max_length=16)
    attempts = models.PositiveIntegerField()
    first_failed_at = models.DateTimeField()
    failed_at = models.DateTimeField()

    replay_count = models.PositiveIntegerField(default=0)
    replay = models.ForeignKey(
        "queueapi.Replay", null=True, on_delete=models.SET_NULL, related_name="letters", db_index=False
    )
    replay_of = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="failed_replays", db_index=False
    )
    # The last entry of the ledger that discarded or restored it.
    decision = models.ForeignKey(
        "queueapi.LedgerEntry", null=True, on_delete=models.SET_NULL, related_name="decided", db_index=False
    )
    note = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-failed_at", "-id"]
        indexes = [
            models.Index(fields=["failed_at"], name="letter_newest"),
            *(
                models.Index(fields=[*fields, "failed_at"], name=f"letter_by_{'_'.join(fields)}")
                for fields in (
                    ["state"],
                    ["queue"],
                    ["queue", "state"],
                    ["tenant"],
                    ["tenant", "state"],
                    ["group"],
                    ["group", "state"],
                )
            ),
            # Few letters have these: the others cost nothing here. What became of a group in a replay is counted from
            # the index alone.
            *(
                models.Index(fields=fields, condition=models.Q(**{f"{fields[0]}__isnull": False}), name=name)
                for name, *fields in (
                    ("letter_by_replay_group_state", "replay", "group", "state"),
                    ("letter_replay_of", "replay_of"),
                    ("letter_decision", "decision"),
                )
            ),
            # What a replay refuses, and what has no place of ours, is taken from the tallies of all letters.
            *(
                models.Index(fields=fields, condition=condition, name=name)
                for name, condition, *fields in (
                    ("letter_replayed", models.Q(replay_count__gt=0), "state", "replay_count"),
                    ("letter_without_payload", ~models.Q(payload_missing=""), "state", "failed_at"),
                    ("letter_of_others", ~models.Q(origin="switchyard"), "state", "failed_at"),
                )
            ),
        ]
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


class DeadLetterBody(models.Model):
    """The rest of a letter: what the message held, where in the code it failed, and what its attempts ended with.
    Headers' values are base64."""

    letter = models.OneToOneField(DeadLetter, primary_key=True, on_delete=models.CASCADE, related_name="body")
    headers = models.JSONField(default=dict)
    stack_trace = models.TextField(blank=True, default="")
    # Each as `FailedAttempt` has it, oldest first; null where the letter does not tell.
    failures = models.JSONField(null=True)
    payload = models.BinaryField()

    class Meta:
        verbose_name_plural = "dead letter bodies"

    def __str__(self) -> str:
        return str(self.letter_id)


class DeadLetterEdit(models.Model):
    """A letter's message as somebody changed it: what a replay sends. The original stays in the letter and its body."""

    letter = models.OneToOneField(DeadLetter, primary_key=True, on_delete=models.CASCADE, related_name="edit")
    key = models.UUIDField(null=True)
    raw_key = models.BinaryField(null=True)
    headers = models.JSONField(default=dict)
    payload = models.BinaryField()
    edited_at = models.DateTimeField(auto_now=True)
    edited_by = models.CharField(max_length=150)

    def __str__(self) -> str:
        return str(self.letter_id)


class QuarantinedLetter(models.Model):
    """A letter that could not be entered into the index, and why. It stays in its topic."""

    letter_topic = models.CharField(max_length=249)
    letter_partition = models.PositiveIntegerField()
    letter_offset = models.PositiveBigIntegerField()
    queue = models.ForeignKey("queueapi.Queue", null=True, on_delete=models.CASCADE)
    error = models.CharField(max_length=500)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["letter_topic", "letter_partition", "letter_offset"], name="letter_quarantined_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.letter_topic}[{self.letter_partition}] offset {self.letter_offset}"


class LetterEpoch(models.Model):
    """The newest epoch that letters of a partition came with. One of an older epoch is from a consumer that had lost
    the partition: whoever has it since gets the message again."""

    topic = models.CharField(max_length=249)
    partition = models.PositiveIntegerField()
    epoch = models.PositiveBigIntegerField()
    refused = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["topic", "partition"], name="letter_epoch_once")]

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] epoch {self.epoch}"
