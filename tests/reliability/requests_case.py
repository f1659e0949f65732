"""One installation of those who ask and those who answer, for processes of their own."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from queuecore.providers.base import Provider
from queuecore.providers.options import ConsumerOptions
from queuecore.requests import RequestOptions, RequestTopics, ResponseOptions

ProviderName = Literal["in-memory", "log", "kafka"]

SESSION_MS: Final = 2_000
# Handlers that hang are given up sooner than who asks gives up.
HANDLER_MS: Final = 2_500
LONG_MS: Final = 20_000
# Less than a burst of requests: it is reached at times.
MAX_PENDING: Final = 30

REQUESTING: Final = RequestOptions(max_pending_requests=MAX_PENDING, max_request_timeout_ms=LONG_MS)
RESPONDING: Final = ResponseOptions(request_timeout_ms=HANDLER_MS, drain_timeout_ms=500)


@dataclass(frozen=True, slots=True)
class Case:
    """
    where   the log's folder, or Kafka's servers
    topic   what the topics' names begin with
    seed    what everything random follows from but the order in which threads and processes get on
    folder  where the journals are
    """

    provider: ProviderName
    where: str
    topic: str
    seed: str
    folder: str

    @property
    def topics(self) -> RequestTopics:
        return RequestTopics.named(self.topic, partitions=4)

    @property
    def journals(self) -> Path:
        return Path(self.folder)

    def open(self) -> Provider:
        """For a process of its own."""
        consuming = ConsumerOptions(session_timeout_ms=SESSION_MS)
        match self.provider:
            case "log":
                from queuecore.providers.log import LogProvider

                return LogProvider(Path(self.where), consuming=consuming)
            case "kafka":
                from queuecore.providers.kafka import KafkaProvider

                return KafkaProvider(self.where, consuming=consuming)
            case other:
                raise ValueError(f"{other} has no processes")

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Case":
        return cls(**json.loads(text))
