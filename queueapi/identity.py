"""What this process is called."""

import os
import socket


def service_id() -> str:
    """The same for the life of the process, and no other running process has it."""
    return f"{socket.gethostname()}-{os.getpid()}"
