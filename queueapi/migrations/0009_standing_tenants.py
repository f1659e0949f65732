from django.db import migrations, models


class Migration(migrations.Migration):
    """Consumers tell what they counted for each tenant."""

    dependencies = [
        ("queueapi", "0008_replay_outcomes"),
    ]

    operations = [
        migrations.AddField(
            model_name="consumerstanding",
            name="tenants",
            field=models.JSONField(default=dict),
        ),
    ]
