"""Which page explains an alert."""

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.choices import AlertMetric, LetterState
from queueapi.config import config

_PAGES: Final = {SubjectKind.CLUSTER: "services", SubjectKind.PIPELINE: "pipeline"}
_LETTERS: Final = (AlertMetric.NEW_LETTERS, AlertMetric.OPEN_LETTERS)


def page_of(metric: AlertMetric, subject: str, queue_id: UUID | None) -> str:
    """Its path. A queue that is gone has none any more: the first one tells what else there is."""
    kind = METRICS[metric].kind
    if kind in _PAGES:
        return reverse(_PAGES[kind])
    if kind == SubjectKind.REQUESTS:
        return f"{reverse('pending_requests')}?{urlencode({'q': subject})}"
    if queue_id is None:
        return reverse("overview")
    if metric in _LETTERS:
        return f"{reverse('dead_letters')}?{urlencode({'queue': queue_id, 'state': LetterState.OPEN})}"
    page = reverse("queue", args=[queue_id])
    return f"{page}#charts" if metric == AlertMetric.ERROR_RATE else page


def address_of(path: str) -> str:
    """As people outside can follow it."""
    return config().console_url + path
