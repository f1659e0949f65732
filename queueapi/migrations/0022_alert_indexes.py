from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("queueapi", "0021_pipeline_offsets"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="alertdelivery",
            name="alert_delivery_finished_exactly_when_so",
        ),
        migrations.RemoveIndex(
            model_name="alertdelivery",
            name="alert_delivery_of_channel",
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(fields=["channel", "created_at", "id"], name="alert_delivery_of_channel"),
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["channel", "created_at", "id"],
                name="alert_delivery_next",
            ),
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)),
                fields=["finished_at"],
                name="alert_delivery_by_finish",
            ),
        ),
        migrations.AddIndex(
            model_name="alertnotice",
            index=models.Index(fields=["channel"], name="alert_notice_of_channel"),
        ),
        migrations.AddConstraint(
            model_name="alertdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at__isnull", True), ("state", "pending")),
                    models.Q(("attempts__gte", 1), ("finished_at__isnull", False), ("state", "sent")),
                    models.Q(("finished_at__isnull", False), ("state", "failed")),
                    _connector="OR",
                ),
                name="alert_delivery_finished_exactly_when_so",
            ),
        ),
    ]
