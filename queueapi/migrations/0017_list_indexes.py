from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("queueapi", "0016_isolation"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="lagcurrent",
            index=models.Index(fields=["topic", "partition", "id"], name="lag_current_by_topic"),
        ),
    ]
