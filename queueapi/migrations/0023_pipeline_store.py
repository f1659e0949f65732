from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queueapi", "0022_alert_indexes")]

    operations = [
        migrations.AddField(
            model_name="pipelinestanding",
            name="store_id",
            field=models.CharField(blank=True, default="", max_length=32),
        ),
    ]
