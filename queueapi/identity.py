"""What this process is called."""

import os
import re
import socket


def service_id() -> str:
    """The same for the life of the process, and no other running process has it. Good for the end of a topic's name."""
    host = re.sub("[^A-Za-z0-9_-]+", "-", socket.gethostname()).strip("-")
    return f"{host}-{os.getpid()}"
