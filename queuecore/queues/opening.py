"""Queues by the name of their provider."""

from pathlib import Path
from typing import Literal

from queuecore.hashing import DEFAULT_HASH
from queuecore.providers.opening import ProviderName, open_provider
from queuecore.providers.options import DEFAULT_CONSUMING, ConsumerOptions, KafkaOptions, ProducerOptions
from queuecore.queues.queues import Queues


def open_queues(
    provider: ProviderName,
    *,
    folder: Path | str | None = None,
    servers: str | None = None,
    kafka: KafkaOptions | None = None,
    producer_id: str | None = None,
    hash_name: str = DEFAULT_HASH,
    debug: bool = False,
    producing: ProducerOptions | None = None,
    consuming: ConsumerOptions = DEFAULT_CONSUMING,
    capacity: int | None = None,
    when_full: Literal["block", "reject"] | None = None,
    marks_folder: Path | str | None = None,
    metrics_interval_s: float | None = None,
) -> Queues:
    """Queues on a provider of this name, which is closed with them.

        with open_queues("log", folder="var/queues") as queues:
            queues.create("orders", partitions=10)
            queues.publish("orders", "customer-123", b"2 apples").result()

    `folder`, `servers`, `kafka`, `producing`, `capacity` and `when_full` are those of `open_provider`, the rest is
    explained at `Queues`; marks are kept in the `log`'s folder where nothing else is said. Subscriptions read at most
    1,000 messages at once, or fewer where `consuming` says so.
    """
    opened = open_provider(
        provider,
        folder=folder,
        servers=servers,
        kafka=kafka,
        producing=producing,
        consuming=consuming,
        capacity=capacity,
        when_full=when_full,
    )
    if marks_folder is None and provider == "log" and folder is not None:
        marks_folder = Path(folder) / "marks"
    hand_over_s = consuming.session_timeout_ms / 2_000
    return Queues(
        opened,
        producer_id=producer_id,
        hash_name=hash_name,
        debug=debug,
        hand_over_s=hand_over_s,
        auto_offset_reset=consuming.auto_offset_reset,
        marks_folder=marks_folder,
        metrics_interval_s=metrics_interval_s,
    )
