from django.db import migrations, models


class Migration(migrations.Migration):
    """What became of a group's letters in a replay is read from an index alone."""

    dependencies = [
        ("queueapi", "0007_letters_slim"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="deadletter",
            name="letter_replay",
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("replay__isnull", False)),
                fields=["replay", "group", "state"],
                name="letter_by_replay_group_state",
            ),
        ),
    ]
