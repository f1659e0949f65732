"""Where the runtime reports to, and in which version. `proto/events.proto` says what."""

from typing import Final

METRICS_TOPIC: Final = "queue.metrics"
METRICS_PARTITIONS: Final = 4

# Raised when a reader of the old version would misread the new one.
EVENT_VERSION: Final = 1
