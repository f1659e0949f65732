"""Serve the console and the REST interface."""

from typing import Any

import uvicorn
from django.core.management.base import BaseCommand

from queueapi.config import config


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        settings = config()
        uvicorn.run(
            "console.asgi:application",
            host=settings.web_host,
            port=settings.web_port,
            workers=settings.web_workers,
            log_level="warning",
            lifespan="off",
            proxy_headers=settings.mode == "production",
            server_header=False,
            timeout_graceful_shutdown=10,
        )
