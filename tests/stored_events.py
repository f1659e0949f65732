"""Events in the pipeline's store, for who wants to know how many there are. No Spark is needed to make them."""

from datetime import UTC, date, datetime
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from django.utils import timezone

from queueapi.config import config
from queueapi.event_files import ID_FILE, SUFFIX, event_folder
from queueapi.models import PipelineStanding

STORE_ID = "5c1f0f2e7d7b4f0e8f0a6b1c2d3e4f50"


def store_events(day: date, events: int, kind: str = "offset_samples") -> None:
    """One file of them, in the store that the database's summaries are made of."""
    folder = event_folder(config()) / kind / day.isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    at = [datetime(day.year, day.month, day.day, tzinfo=UTC)] * events
    pq.write_table(pa.table({"at": at}), folder / f"0-0-{uuid4().hex}-0{SUFFIX}")
    (event_folder(config()) / ID_FILE).write_text(STORE_ID)
    PipelineStanding.objects.update_or_create(defaults={"ran_at": timezone.now(), "store_id": STORE_ID})
