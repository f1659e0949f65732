"""What this process is called."""

import os
import re
import socket
from functools import cache


def service_id() -> str:
    """The same for the life of the process, and no other running process has it. Good for the end of a topic's name."""
    return f"{_host()}-{os.getpid()}"


@cache
def _host() -> str:
    return re.sub("[^A-Za-z0-9_-]+", "-", socket.gethostname()).strip("-")
