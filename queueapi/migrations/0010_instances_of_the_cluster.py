import django.db.models.deletion
from django.db import migrations, models

_STATES = [
    ("waiting", "Waiting for a partition"),
    ("running", "Running"),
    ("paused", "Paused"),
    ("stalled", "Stalled"),
    ("standing_still", "Standing still"),
]


class Migration(migrations.Migration):
    """Service instances are in the cluster's own tables. Their consumers tell anew how they are: nothing of that is kept
    for longer than its host is there. Dead letters have epochs, and queues may ask for services with a label."""

    dependencies = [
        ("queueapi", "0009_standing_tenants"),
    ]

    operations = [
        migrations.DeleteModel(name="ConsumerStanding"),
        migrations.DeleteModel(name="ServiceInstance"),
        migrations.AddField(
            model_name="queue",
            name="label",
            field=models.CharField(blank=True, default="", max_length=100),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="epoch",
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.CreateModel(
            name="LetterEpoch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=249)),
                ("partition", models.PositiveIntegerField()),
                ("epoch", models.PositiveBigIntegerField()),
                ("refused", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("topic", "partition"), name="letter_epoch_once")],
            },
        ),
        migrations.CreateModel(
            name="ConsumerStanding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("service_id", models.CharField(db_index=True, max_length=100)),
                ("consumer_group", models.CharField(max_length=249)),
                ("partitions", models.JSONField(default=list)),
                ("state", models.CharField(choices=_STATES, max_length=16)),
                ("reason", models.TextField(blank=True)),
                ("since", models.DateTimeField()),
                ("as_of", models.DateTimeField()),
                ("counts", models.JSONField(default=dict)),
                ("tenants", models.JSONField(default=dict)),
                ("handled_per_s", models.FloatField(null=True)),
                ("budget", models.JSONField(default=dict)),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="consumers", to="queueapi.queue"
                    ),
                ),
            ],
            options={
                "ordering": ["consumer_group", "service_id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("service_id", "queue", "consumer_group"), name="consumer_standing_once"
                    )
                ],
            },
        ),
    ]
