"""Telling people of alerts. Channels side by side: one that is down keeps no other waiting."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from typing import Final, NamedTuple

from django.utils import timezone

from queueapi.actions.alert_deliveries import claim_deliveries, message_of, record_failure, record_sent
from queueapi.alerting.channels import open_channel
from queueapi.alerting.errors import ChannelRefused
from queueapi.alerting.messages import Message
from queueapi.models import AlertDelivery
from queuecore.errors import ConfigurationError, QueueError

logger = logging.getLogger(__name__)

SIDE_BY_SIDE: Final = 8
# Then others have their turn; the next task goes on.
_MOST_ROUNDS: Final = 50
_ONE_AT_A_TIME: Final = threading.Lock()


class _Outcome(NamedTuple):
    """`error` is empty where it was sent."""

    error: str = ""
    may_help_to_retry: bool = True


def deliver_alerts(now: Callable[[], datetime] = timezone.now) -> int:
    """Make the deliveries that are due; how many were tried. Of one process one thread does so: the others go on with
    what else there is."""
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        return 0
    try:
        tried = 0
        for _ in range(_MOST_ROUNDS):
            if not (claimed := _round(now)):
                break
            tried += claimed
        return tried
    finally:
        _ONE_AT_A_TIME.release()


def _round(now: Callable[[], datetime]) -> int:
    """One of each channel, of as many as go side by side."""
    claimed = claim_deliveries(now(), SIDE_BY_SIDE)
    if not claimed:
        return 0
    # What threads need is read here: the database is this one's.
    wanted = [(one, one.channel.kind, one.channel.options, message_of(one)) for one in claimed]
    with ThreadPoolExecutor(len(wanted), "alerts") as pool:
        tries = {pool.submit(_attempt, *given): delivery for delivery, *given in wanted}
        for tried in as_completed(tries):
            _record(tries[tried], tried.result(), now())
    return len(claimed)


def _attempt(kind: str, options: dict[str, object], message: Message) -> _Outcome:
    try:
        open_channel(kind, options).send(message)
    except (ChannelRefused, ConfigurationError) as error:
        return _Outcome(error.message, may_help_to_retry=False)
    except QueueError as error:
        return _Outcome(error.message)
    except Exception as error:
        logger.exception("an alert could not be sent")
        return _Outcome(f"{type(error).__name__}: {error}")
    return _Outcome()


def _record(delivery: AlertDelivery, outcome: _Outcome, now: datetime) -> None:
    if not outcome.error:
        record_sent(delivery, now)
        return
    logger.warning("channel %s could not be told of alerts: %s", delivery.channel, outcome.error)
    record_failure(delivery, outcome.error, now, may_help_to_retry=outcome.may_help_to_retry)
