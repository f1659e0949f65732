"""What the web server runs."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup(set_prefix=False)

from console.publishing import PublishingFirst  # noqa: E402 - its settings are there now
from console.serving import ThreadKeepingHandler  # noqa: E402
from queueapi.reporting import show_web_server  # noqa: E402
from queuecore.collector import collect_seldom  # noqa: E402

show_web_server()

application = PublishingFirst(ThreadKeepingHandler())
collect_seldom()
