import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Queues have a state, and all of their configuration. Those that are there are active, and their topics stay as they
    were created."""

    dependencies = [
        ("queueapi", "0013_message_types"),
    ]

    operations = [
        migrations.AddField(
            model_name="queue",
            name="custom_properties",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="queue",
            name="max_backlog",
            field=models.BigIntegerField(
                default=0,
                validators=[
                    django.core.validators.MinValueValidator(
                        0, "%(show_value)s cannot be; use 0 to 1,000,000,000,000 messages; 0 is without limit"
                    ),
                    django.core.validators.MaxValueValidator(
                        1000000000000,
                        "%(show_value)s cannot be; use 0 to 1,000,000,000,000 messages; 0 is without limit",
                    ),
                ],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="operation",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="queueapi.operation",
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="replication_factor",
            field=models.PositiveIntegerField(
                blank=True,
                default=None,
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(
                        1, "%(show_value)s cannot be; use 1 to 100 copies; none is the provider's default"
                    ),
                    django.core.validators.MaxValueValidator(
                        100, "%(show_value)s cannot be; use 1 to 100 copies; none is the provider's default"
                    ),
                ],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="retention_bytes",
            field=models.BigIntegerField(
                default=-1,
                validators=[
                    django.core.validators.MinValueValidator(
                        -1,
                        "%(show_value)s cannot be; use -1 to 1,152,921,504,606,846,976 bytes in each partition; -1 is without limit",
                    ),
                    django.core.validators.MaxValueValidator(
                        1152921504606846976,
                        "%(show_value)s cannot be; use -1 to 1,152,921,504,606,846,976 bytes in each partition; -1 is without limit",
                    ),
                ],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="retention_ms",
            field=models.BigIntegerField(
                default=604800000,
                validators=[
                    django.core.validators.MinValueValidator(
                        -1, "%(show_value)s cannot be; use -1 to 3,153,600,000,000 ms; -1 is for ever"
                    ),
                    django.core.validators.MaxValueValidator(
                        3153600000000, "%(show_value)s cannot be; use -1 to 3,153,600,000,000 ms; -1 is for ever"
                    ),
                ],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="segment_bytes",
            field=models.BigIntegerField(
                default=52428800,
                validators=[
                    django.core.validators.MinValueValidator(
                        1048576, "%(show_value)s cannot be; use 1,048,576 to 2,147,483,647 bytes"
                    ),
                    django.core.validators.MaxValueValidator(
                        2147483647, "%(show_value)s cannot be; use 1,048,576 to 2,147,483,647 bytes"
                    ),
                ],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="state",
            field=models.CharField(
                choices=[
                    ("creating", "Creating"),
                    ("active", "Active"),
                    ("draining", "Draining"),
                    ("deleting", "Deleting"),
                ],
                default="active",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="successor",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="predecessors",
                to="queueapi.queue",
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="batch_size",
            field=models.PositiveIntegerField(
                default=1000,
                validators=[
                    django.core.validators.MinValueValidator(
                        1, "%(show_value)s cannot be; use 1 to 1,000,000 messages"
                    ),
                    django.core.validators.MaxValueValidator(
                        1000000, "%(show_value)s cannot be; use 1 to 1,000,000 messages"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="concurrency",
            field=models.PositiveIntegerField(
                default=4,
                validators=[
                    django.core.validators.MinValueValidator(
                        1, "%(show_value)s cannot be; use 1 to 1,000 messages side by side"
                    ),
                    django.core.validators.MaxValueValidator(
                        1000, "%(show_value)s cannot be; use 1 to 1,000 messages side by side"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="dlq_max_count",
            field=models.PositiveIntegerField(
                default=0,
                validators=[
                    django.core.validators.MinValueValidator(
                        0, "%(show_value)s cannot be; use 0 to 1,000,000,000 letters; 0 is without limit"
                    ),
                    django.core.validators.MaxValueValidator(
                        1000000000, "%(show_value)s cannot be; use 0 to 1,000,000,000 letters; 0 is without limit"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="dlq_window_s",
            field=models.PositiveIntegerField(
                default=60,
                validators=[
                    django.core.validators.MinValueValidator(1, "%(show_value)s cannot be; use 1 to 86,400 s"),
                    django.core.validators.MaxValueValidator(86400, "%(show_value)s cannot be; use 1 to 86,400 s"),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="max_retry_pause_ms",
            field=models.PositiveIntegerField(
                default=5000,
                validators=[
                    django.core.validators.MinValueValidator(0, "%(show_value)s cannot be; use 0 to 3,600,000 ms"),
                    django.core.validators.MaxValueValidator(
                        3600000, "%(show_value)s cannot be; use 0 to 3,600,000 ms"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="pack_processing_timeout_ms",
            field=models.PositiveIntegerField(
                default=60000,
                validators=[
                    django.core.validators.MinValueValidator(1, "%(show_value)s cannot be; use 1 to 86,400,000 ms"),
                    django.core.validators.MaxValueValidator(
                        86400000, "%(show_value)s cannot be; use 1 to 86,400,000 ms"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="partitions",
            field=models.PositiveIntegerField(
                default=3,
                validators=[
                    django.core.validators.MinValueValidator(1, "%(show_value)s cannot be; use 1 to 1,000 partitions"),
                    django.core.validators.MaxValueValidator(
                        1000, "%(show_value)s cannot be; use 1 to 1,000 partitions"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="poll_interval_ms",
            field=models.PositiveIntegerField(
                default=25,
                validators=[
                    django.core.validators.MinValueValidator(1, "%(show_value)s cannot be; use 1 to 60,000 ms"),
                    django.core.validators.MaxValueValidator(60000, "%(show_value)s cannot be; use 1 to 60,000 ms"),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="retries",
            field=models.PositiveIntegerField(
                default=3,
                validators=[
                    django.core.validators.MinValueValidator(
                        0, "%(show_value)s cannot be; use 0 to 1,000 retries; 0 is without limit"
                    ),
                    django.core.validators.MaxValueValidator(
                        1000, "%(show_value)s cannot be; use 0 to 1,000 retries; 0 is without limit"
                    ),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="retry_pause_ms",
            field=models.PositiveIntegerField(
                default=200,
                validators=[
                    django.core.validators.MinValueValidator(0, "%(show_value)s cannot be; use 0 to 3,600,000 ms"),
                    django.core.validators.MaxValueValidator(
                        3600000, "%(show_value)s cannot be; use 0 to 3,600,000 ms"
                    ),
                ],
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["creating", "active", "draining", "deleting"])),
                name="queue_state_is_legal",
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("successor__isnull", True),
                    models.Q(
                        ("state__in", ("draining", "deleting")), models.Q(("successor", models.F("id")), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="queue_successor_is_another_while_ending",
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_backlog__gte", 0), ("retention_bytes__gte", -1), ("retention_ms__gte", -1)),
                name="queue_retention_in_range",
                violation_error_message="retention: use -1 for ever, or more; max_backlog: use 0 or more",
            ),
        ),
    ]
