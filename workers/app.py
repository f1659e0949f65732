"""One Celery app for all workers; what a worker does is decided by the queue it serves and its options."""

import os
import warnings

from celery import Celery
from celery.platforms import SecurityWarning
from click import Option
from django.conf import settings

from workers.bootsteps import ConsumerHostStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

# Celery warns a superuser about pickled messages. Ours are JSON alone: nothing in a message is ever executed.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("switchyard")
app.conf.update(settings.CELERY)
app.conf.imports = ("workers.tasks", "workers.spark.tasks")
app.user_options["worker"].add(
    Option(["--host-consumers"], is_flag=True, help="Run consumers of queues inside this worker.")
)
app.user_options["worker"].add(
    Option(
        ["--service-id"],
        default="",
        help="The id of its service instance, instead of SWITCHYARD_SERVICE_ID. Started again with the same one, it "
        "has its partitions again at once.",
    )
)
app.steps["worker"].add(ConsumerHostStep)
