"""What the log says when the brokers cannot be reached: it once, and once that it is over."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.errors import ProviderUnavailable
from queuecore.providers.kafka.codes import AWAY, FAILED_CONNECTION, UNTRUSTED

logger = logging.getLogger("queuecore.providers.kafka")

# How often the brokers are asked whether they are back, and how long they may take to answer.
_ASK_EVERY_S: Final = 1.0
# After a false alarm.
_TRUST_THEM_S: Final = 10.0
# A client tries a broker again within ten seconds, and says why that failed.
_REASON_HOLDS_S: Final = 15.0

# What the library says of single connections and requests, again and again while a broker is away; and of what ends a
# client or a transaction, which is an error of theirs as well, and told as that.
_CHATTER: Final = frozenset(
    {
        "FAIL",
        "ERROR",
        "REQTMOUT",
        "GETPID",
        "METADATA",
        "METADATAUPDATE",
        "SESSTMOUT",
        "FATAL",
        "TXNERR",
        "ADDPARTS",
        "ADDOFFSETS",
    }
)


class Chatter:
    """What the library is given as its logger. It tells of every failed connection; the outage says that once."""

    def log(self, level: int, form: str, facility: str, client: str, text: str) -> None:
        logger.log(logging.DEBUG if facility in _CHATTER else level, form, facility, client, text)


class Probe(Protocol):
    """A client that only asks whether somebody is there."""

    def ask(self, timeout_s: float) -> None:
        """KafkaException when nobody answers in that time."""


class Outage:
    """Told of every error that may mean that the brokers are away, by any client on any thread.

    A client's complaint is a suspicion: one broker of several may be gone, or an idle connection. So a thread asks the
    brokers themselves, says what it finds, and asks on until they answer. It lives no longer than that.
    """

    def __init__(self, address: str, open_probe: Callable[[], Probe], clock: Clock = SYSTEM_CLOCK) -> None:
        self._address = address
        self._open_probe = open_probe
        self._clock = clock
        self._lock = threading.Lock()
        self._reason = ""
        self._noted_at = 0.0
        self._is_refused = False
        self._trusted_until = 0.0
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def report(self, error: KafkaError | ProviderUnavailable) -> None:
        """Returns at once. What is no sign of an outage only the debug log hears."""
        if isinstance(error, KafkaError):
            logger.debug("%s: %s", error.name(), error.str())
            if not self._note(error):
                return
        now = self._clock.monotonic()
        with self._lock:
            if self._thread is None and now >= self._trusted_until and not self._closed.is_set():
                self._thread = threading.Thread(target=self._watch, args=(now,), name="kafka-outage", daemon=True)
                self._thread.start()

    @property
    def is_watching(self) -> bool:
        """Whether the brokers are being asked."""
        with self._lock:
            return self._thread is not None

    @property
    def reason(self) -> str:
        """Why the brokers cannot be reached, as a connection that failed has said; empty where none has."""
        return self._reason if self._clock.monotonic() < self._noted_at + _REASON_HOLDS_S else ""

    def find_reason(self) -> None:
        """Ask the brokers, unless the reason is known: for a client that does not tell its own."""
        if not self.reason:
            _answers(self._open_probe())

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _note(self, error: KafkaError) -> bool:
        """Whether it is worth asking the brokers. A connection that failed says why, and may be one of many."""
        code = error.code()
        if code in UNTRUSTED or (code in FAILED_CONNECTION and not self._is_refused):
            self._reason, self._noted_at = error.str(), self._clock.monotonic()
            self._is_refused = code in UNTRUSTED
        return code in AWAY or code in UNTRUSTED

    def _watch(self, since: float) -> None:
        try:
            probe = self._open_probe()
            if _answers(probe):
                self._trusted_until = self._clock.monotonic() + _TRUST_THEM_S
                return
            self._say_it()
            while not _answers(probe):
                if self._closed.wait(_ASK_EVERY_S):
                    return
            seconds = self._clock.monotonic() - since
            logger.warning("Kafka at %s is reached again after %.0f s; all goes on by itself", self._address, seconds)
        finally:
            self._reason, self._is_refused = "", False
            with self._lock:
                self._thread = None

    def _say_it(self) -> None:
        if self._is_refused:
            logger.error(
                "Kafka at %s and this client do not trust each other (%s): nothing is sent or received; check the "
                "security settings: TLS, certificates, SASL mechanism, username and password",
                self._address,
                self._reason,
            )
            return
        logger.error(
            "Kafka at %s cannot be reached (%s): what is sent waits, and once the buffer is full senders are refused; "
            "consumers get nothing. Check that the brokers run and that this address reaches them from here",
            self._address,
            self._reason or "no answer",
        )


def _answers(probe: Probe) -> bool:
    try:
        probe.ask(_ASK_EVERY_S)
    except KafkaException:
        return False
    return True
