"""Which page explains an alert."""

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from queueapi.alerting.metrics import METRICS, SubjectKind
from queueapi.choices import AlertMetric, LetterState
from queueapi.config import config

_LETTERS: Final = (AlertMetric.NEW_LETTERS, AlertMetric.OPEN_LETTERS)


def page_of(metric: AlertMetric, subject: str, queue_id: UUID | None) -> str:
    """Its path. Of requests the console has no page: REST tells of them. A queue that is gone has none any more: the
    first one tells what else there is."""
    if METRICS[metric].kind == SubjectKind.CLUSTER:
        return reverse("services")
    if METRICS[metric].kind == SubjectKind.REQUESTS:
        return f"{reverse('requestcurrent-list')}?{urlencode({'request_topic': subject})}"
    if queue_id is None:
        return reverse("overview")
    if metric in _LETTERS:
        return f"{reverse('dead_letters')}?{urlencode({'queue': queue_id, 'state': LetterState.OPEN})}"
    return reverse("queue", args=[queue_id])


def address_of(path: str) -> str:
    """As people outside can follow it."""
    return config().console_url + path
