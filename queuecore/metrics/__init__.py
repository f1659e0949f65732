"""Where the runtime reports to, in which version, and how much of it. `proto/events.proto` says what."""

from typing import Final

METRICS_TOPIC: Final = "queue.metrics"
METRICS_PARTITIONS: Final = 4

# Raised when a reader of the old version would misread the new one.
EVENT_VERSION: Final = 1

# Upper bounds, in milliseconds, of how long attempts at packs took; the last bucket is for what took longer.
PROCESSING_BOUNDS_MS: Final = (
    *(0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
    *(1_000.0, 2_000.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0),
)

# Who names a tenant in a header may name any: beyond this, they are counted together.
MOST_TENANTS: Final = 1_000
# The same of errors that letters are of.
MOST_FINGERPRINTS: Final = 100
# What those beyond are called.
OTHER: Final = "other"
