"""The `in-memory` provider: bounded queues inside one process, for tests and single-process installations."""

from queuecore.providers.memory.provider import MemoryProvider
from queuecore.providers.memory.storage import MemoryStorage, WhenFull

__all__ = ["MemoryProvider", "MemoryStorage", "WhenFull"]
