import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Groups, tallies, replays and the ledger; letters may have them."""

    dependencies = [
        ("queueapi", "0004_operation_waits"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DeadLetterBody",
            fields=[
                (
                    "letter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="body",
                        serialize=False,
                        to="queueapi.deadletter",
                    ),
                ),
                ("headers", models.JSONField(default=dict)),
                ("stack_trace", models.TextField(blank=True, default="")),
                ("payload", models.BinaryField()),
            ],
            options={
                "verbose_name_plural": "dead letter bodies",
            },
        ),
        migrations.CreateModel(
            name="DeadLetterEdit",
            fields=[
                (
                    "letter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="edit",
                        serialize=False,
                        to="queueapi.deadletter",
                    ),
                ),
                ("key", models.UUIDField(null=True)),
                ("raw_key", models.BinaryField(null=True)),
                ("headers", models.JSONField(default=dict)),
                ("payload", models.BinaryField()),
                ("edited_at", models.DateTimeField(auto_now=True)),
                ("edited_by", models.CharField(max_length=150)),
            ],
        ),
        migrations.CreateModel(
            name="DeadLetterGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=16)),
                ("exception_class", models.CharField(max_length=500)),
                ("exception_message", models.TextField()),
                ("first_seen", models.DateTimeField()),
                ("last_seen", models.DateTimeField()),
                ("letters", models.PositiveBigIntegerField(default=0)),
                ("open_letters", models.PositiveBigIntegerField(default=0)),
                ("note", models.TextField(blank=True, default="")),
                ("noted_by", models.CharField(blank=True, default="", max_length=150)),
                ("noted_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-last_seen", "-id"],
            },
        ),
        migrations.CreateModel(
            name="DeadLetterTally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant_id", models.UUIDField(db_index=True, default=uuid.UUID(int=0))),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("replaying", "Replaying"),
                            ("replayed", "Replayed"),
                            ("failed_again", "Failed again"),
                            ("discarded", "Discarded"),
                        ],
                        max_length=16,
                    ),
                ),
                ("letters", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "verbose_name_plural": "dead letter tallies",
                "ordering": ["group", "tenant_id", "state"],
            },
        ),
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("actor_name", models.CharField(max_length=150)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("replay", "Replayed"),
                            ("edit", "Edited"),
                            ("discard", "Discarded"),
                            ("restore", "Restored"),
                            ("note", "Noted"),
                            ("purge", "Removed for their age"),
                        ],
                        max_length=16,
                    ),
                ),
                ("count", models.PositiveIntegerField(default=1)),
                ("reason", models.TextField(blank=True, default="")),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
            ],
            options={
                "verbose_name_plural": "ledger entries",
                "ordering": ["-at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="QuarantinedLetter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("letter_topic", models.CharField(max_length=249)),
                ("letter_partition", models.PositiveIntegerField()),
                ("letter_offset", models.PositiveBigIntegerField()),
                ("error", models.CharField(max_length=500)),
                ("at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["-at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("filter", models.JSONField(default=dict)),
                ("rate_per_s", models.FloatField(null=True)),
                ("ramp", models.JSONField(default=list)),
                ("abort_ratio", models.FloatField(null=True)),
                ("abort_min", models.PositiveIntegerField(default=10)),
                ("max_replays", models.PositiveIntegerField(default=5)),
                ("sent", models.PositiveIntegerField(default=0)),
                ("succeeded", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                ("is_collected", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["-operation__created_at"],
            },
        ),
        migrations.CreateModel(
            name="ReplayChunk",
            fields=[
                (
                    "replay",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="chunk",
                        serialize=False,
                        to="queueapi.replay",
                    ),
                ),
                ("first_sequence", models.PositiveIntegerField()),
                ("last_sequence", models.PositiveIntegerField()),
                ("end_offsets", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="ReplayItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("sent", "Sent"),
                            ("arrived", "Arrived"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed again"),
                            ("skipped", "Skipped"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("sent_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
            ],
            options={
                "ordering": ["replay", "sequence"],
            },
        ),
        migrations.AddField(
            model_name="deadletter",
            name="is_edited",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="note",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="origin",
            field=models.CharField(default="switchyard", max_length=32),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="payload_missing",
            field=models.CharField(blank=True, default="", max_length=500),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="payload_size",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="replay_count",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="service",
            field=models.CharField(blank=True, default="", max_length=100),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="stage",
            field=models.CharField(blank=True, default="", max_length=16),
        ),
        migrations.AddField(
            model_name="deadlettergroup",
            name="queue",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="letter_groups",
                to="queueapi.queue",
            ),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="members",
                to="queueapi.deadlettergroup",
            ),
        ),
        migrations.AddField(
            model_name="deadlettertally",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tallies",
                to="queueapi.deadlettergroup",
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="actor",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="group",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="ledger",
                to="queueapi.deadlettergroup",
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="letter",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="ledger",
                to="queueapi.deadletter",
            ),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="decision",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="decided",
                to="queueapi.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="quarantinedletter",
            name="queue",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to="queueapi.queue"),
        ),
        migrations.AddField(
            model_name="replay",
            name="operation",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="replay", to="queueapi.operation"
            ),
        ),
        migrations.AddField(
            model_name="replay",
            name="target",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="replays", to="queueapi.queue"
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="replay",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="ledger",
                to="queueapi.replay",
            ),
        ),
        migrations.AddField(
            model_name="replayitem",
            name="letter",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="replay_items",
                to="queueapi.deadletter",
            ),
        ),
        migrations.AddField(
            model_name="replayitem",
            name="replay",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="items", to="queueapi.replay"
            ),
        ),
        migrations.AddIndex(
            model_name="deadlettergroup",
            index=models.Index(fields=["open_letters", "last_seen"], name="letter_group_by_open"),
        ),
        migrations.AddIndex(
            model_name="deadlettergroup",
            index=models.Index(fields=["last_seen"], name="letter_group_newest"),
        ),
        migrations.AddIndex(
            model_name="deadlettergroup",
            index=models.Index(fields=["fingerprint"], name="letter_group_by_fingerprint"),
        ),
        migrations.AddConstraint(
            model_name="deadlettergroup",
            constraint=models.UniqueConstraint(fields=("queue", "fingerprint"), name="letter_group_once_per_queue"),
        ),
        migrations.AddConstraint(
            model_name="deadlettergroup",
            constraint=models.CheckConstraint(
                condition=models.Q(("open_letters__lte", models.F("letters"))),
                name="letter_group_open_among_its_letters",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadlettertally",
            constraint=models.UniqueConstraint(fields=("group", "tenant_id", "state"), name="letter_tally_once"),
        ),
        migrations.AddConstraint(
            model_name="quarantinedletter",
            constraint=models.UniqueConstraint(
                fields=("letter_topic", "letter_partition", "letter_offset"), name="letter_quarantined_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.CheckConstraint(
                condition=models.Q(("rate_per_s__isnull", True), ("rate_per_s__gt", 0), _connector="OR"),
                name="replay_rate_above_0",
            ),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("abort_ratio__isnull", True),
                    models.Q(("abort_ratio__gt", 0), ("abort_ratio__lte", 1)),
                    _connector="OR",
                ),
                name="replay_abort_ratio_in_range",
            ),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["at"], name="ledger_newest"),
        ),
        migrations.AddConstraint(
            model_name="replaychunk",
            constraint=models.CheckConstraint(
                condition=models.Q(("last_sequence__gte", models.F("first_sequence"))), name="replay_chunk_not_empty"
            ),
        ),
        migrations.AddConstraint(
            model_name="replayitem",
            constraint=models.UniqueConstraint(fields=("replay", "sequence"), name="replay_item_in_sequence"),
        ),
        migrations.AddConstraint(
            model_name="replayitem",
            constraint=models.UniqueConstraint(fields=("letter", "replay"), name="replay_item_once_per_letter"),
        ),
    ]
