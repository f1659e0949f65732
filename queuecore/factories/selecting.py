"""The factory for a deployment, a service type and a provider."""

import re
import socket
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from queuecore.factories.kinds import Deployment, find_kind
from queuecore.factories.protocols import (
    CoreQueueFactory,
    EdqsQueueFactory,
    MonolithQueueFactory,
    RuleEngineQueueFactory,
    ServiceQueueFactory,
    TransportQueueFactory,
    VersionControlQueueFactory,
)
from queuecore.providers.base import Provider
from queuecore.providers.opening import ProviderName, open_provider
from queuecore.topics import ServiceType

if TYPE_CHECKING:
    from queuecore.config.queue_tree import QueueSettings


@overload
def queue_factory(
    deployment: Literal[Deployment.MONOLITH],
    service_type: Literal[ServiceType.TB_CORE, ServiceType.TB_RULE_ENGINE, ServiceType.TB_VC_EXECUTOR],
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> MonolithQueueFactory: ...


@overload
def queue_factory(
    deployment: Deployment | str,
    service_type: Literal[ServiceType.TB_CORE],
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> CoreQueueFactory: ...


@overload
def queue_factory(
    deployment: Deployment | str,
    service_type: Literal[ServiceType.TB_RULE_ENGINE],
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> RuleEngineQueueFactory: ...


@overload
def queue_factory(
    deployment: Deployment | str,
    service_type: Literal[ServiceType.TB_TRANSPORT],
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> TransportQueueFactory: ...


@overload
def queue_factory(
    deployment: Deployment | str,
    service_type: Literal[ServiceType.TB_VC_EXECUTOR],
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> VersionControlQueueFactory: ...


@overload
def queue_factory(
    deployment: Deployment | str,
    service_type: Literal[ServiceType.EDQS],
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> EdqsQueueFactory: ...


@overload
def queue_factory(
    deployment: Deployment | str,
    service_type: ServiceType | str,
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> ServiceQueueFactory: ...


def queue_factory(
    deployment: Deployment | str,
    service_type: ServiceType | str,
    provider: ProviderName,
    *,
    settings: "QueueSettings | None" = None,
    service_id: str | None = None,
    folder: Path | str | None = None,
    opened: Provider | None = None,
    job_types: Iterable[str] = (),
) -> ServiceQueueFactory:
    """The producers and consumers of a service of the platform.

        factory = queue_factory(Deployment.MICROSERVICES, ServiceType.TB_CORE, "log", folder="var/log")
        factory.create_topics()
        producer = factory.rule_engine_producer()

    settings    the `queue:` tree; by default its defaults, and so Kafka at localhost:9092
    service_id  which instance of the service this is; by default the name of the machine
    folder      where the provider `log` keeps its files
    opened      a provider that is open already and stays so, as services that share an `in-memory` one need
    job_types   the types of jobs whose tasks are sent, besides those that the settings name

    ConfigurationError where the platform has no such service, with the list of those it has.
    """
    # The settings tree brings a YAML reader with it, which nobody else who uses the library needs.
    from queuecore.config.queue_options import consumer_options, kafka_options, producer_options
    from queuecore.config.queue_tree import QueueSettings
    from queuecore.factories.factory import QueueFactory, router_of

    types = tuple(job_types)
    kind = find_kind(deployment, service_type, provider)
    settings = replace(settings or QueueSettings(), type=provider)
    used = opened or open_provider(
        provider,
        folder=folder,
        servers=settings.kafka.bootstrap_servers if provider == "kafka" else None,
        kafka=kafka_options(settings) if provider == "kafka" else None,
        producing=producer_options(settings),
        consuming=consumer_options(settings),
    )
    router = router_of(settings, types)
    return QueueFactory(kind, used, settings, service_id or _host(), router, types, is_owner=opened is None)


def _host() -> str:
    """The machine's name, as far as it can be part of a topic's."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", socket.gethostname()).strip("-") or "node"
