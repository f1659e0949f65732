from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queueapi", "0020_figures_indexes")]

    operations = [
        migrations.AddField(model_name="pipelinerun", name="offsets", field=models.JSONField(default=dict)),
    ]
