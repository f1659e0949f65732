import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Letters must have a group, and lose what their bodies and replays hold."""

    dependencies = [
        ("queueapi", "0006_letters_moved"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="deadletter",
            name="queueapi_de_state_1d87f1_idx",
        ),
        migrations.RemoveIndex(
            model_name="deadletter",
            name="queueapi_de_queue_i_91b73c_idx",
        ),
        migrations.RemoveField(
            model_name="deadletter",
            name="headers",
        ),
        migrations.RemoveField(
            model_name="deadletter",
            name="payload",
        ),
        migrations.RemoveField(
            model_name="deadletter",
            name="replay_sent_at",
        ),
        migrations.RemoveField(
            model_name="deadletter",
            name="stack_trace",
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="exception_class",
            field=models.CharField(max_length=500),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="failed_at",
            field=models.DateTimeField(),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="fingerprint",
            field=models.CharField(max_length=16),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="queue",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="dead_letters",
                to="queueapi.queue",
            ),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="replay_of",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="failed_replays",
                to="queueapi.deadletter",
            ),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="dead_letters",
                to="queueapi.tenant",
            ),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="members",
                to="queueapi.deadlettergroup",
            ),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="replay",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="letters",
                to="queueapi.replay",
            ),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["failed_at"], name="letter_newest"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["state", "failed_at"], name="letter_by_state"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["queue", "failed_at"], name="letter_by_queue"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["queue", "state", "failed_at"], name="letter_by_queue_state"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["tenant", "failed_at"], name="letter_by_tenant"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["tenant", "state", "failed_at"], name="letter_by_tenant_state"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["group", "failed_at"], name="letter_by_group"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["group", "state", "failed_at"], name="letter_by_group_state"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(condition=models.Q(("replay__isnull", False)), fields=["replay"], name="letter_replay"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("replay_of__isnull", False)), fields=["replay_of"], name="letter_replay_of"
            ),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("decision__isnull", False)), fields=["decision"], name="letter_decision"
            ),
        ),
    ]
