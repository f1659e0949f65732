"""Of what time charts are: the last hours or days, or from one moment to another."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from console.charts import Span
from queueapi.selectors.histories import Resolution
from queueapi.times import read_time

DEFAULT: Final = "1h"
CUSTOM: Final = "custom"
_LENGTHS: Final = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
_LONGEST: Final = timedelta(days=366)
_MOST_POINTS: Final = 200
_STEPS: Final = (
    *(timedelta(minutes=number) for number in (1, 2, 3, 5, 10, 15, 20, 30)),
    *(timedelta(hours=number) for number in (1, 2, 3, 4, 6, 12)),
    *(timedelta(days=number) for number in (1, 2)),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChartRange:
    """`wrong` says why something else is shown than what was asked for."""

    key: str
    span: Span
    wrong: str = ""

    @property
    def resolution(self) -> Resolution:
        """The longest stretches that its points can be made of."""
        return next(
            (one for one in (Resolution.DAY, Resolution.HOUR) if self.span.step >= one.stretch), Resolution.MINUTE
        )

    @property
    def choices(self) -> list[tuple[str, str]]:
        return [(key, key.replace("h", " h").replace("d", " d")) for key in _LENGTHS]


def asked_range(asked: Mapping[str, str], now: datetime) -> ChartRange:
    """As the address says: `range`, or `from` and `to` by UTC."""
    key = asked.get("range", DEFAULT)
    if key == CUSTOM:
        begin, end = (_moment(asked.get(name, "")) for name in ("from", "to"))
        end = min(end or now, now)
        if begin is not None and timedelta(minutes=1) <= end - begin <= _LONGEST:
            return ChartRange(CUSTOM, _span(begin, end))
        return ChartRange(
            DEFAULT, _span(now - _LENGTHS[DEFAULT], now), "Choose a time that begins before it ends, of up to a year."
        )
    key = key if key in _LENGTHS else DEFAULT
    return ChartRange(key, _span(now - _LENGTHS[key], now))


def _span(begin: datetime, end: datetime) -> Span:
    """Of whole stretches, so that points stay where they are while time goes on."""
    step = next((step for step in _STEPS if (end - begin) / step <= _MOST_POINTS), _STEPS[-1])
    first = begin - (begin - _EPOCH) % step
    return Span(first, end - (end - _EPOCH) % step + step, step)


def _moment(text: str) -> datetime | None:
    found = read_time(text)
    return None if found is None else found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
