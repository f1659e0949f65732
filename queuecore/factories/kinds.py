"""Which factories there are: a row each, instead of a class each."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queuecore.errors import ConfigurationError
from queuecore.factories.channels import SENDS, Channel
from queuecore.providers.opening import ProviderName
from queuecore.topics import ServiceType


class Deployment(StrEnum):
    """How the services of the platform run: all in one process, or each in its own."""

    MONOLITH = "monolith"
    MICROSERVICES = "microservices"


_TOGETHER: Final = frozenset({Deployment.MONOLITH})
_APART: Final = frozenset({Deployment.MICROSERVICES})

_CORE: Final = (ServiceType.TB_CORE,)
_RULE_ENGINE: Final = (ServiceType.TB_RULE_ENGINE,)
_TRANSPORT: Final = (ServiceType.TB_TRANSPORT,)
_VERSION_CONTROL: Final = (ServiceType.TB_VC_EXECUTOR,)
_EDQS: Final = (ServiceType.EDQS,)


@dataclass(frozen=True, slots=True)
class FactoryKind:
    """A factory: on which provider, for which deployments, and for the queues of which services."""

    name: str
    provider: ProviderName
    deployments: frozenset[Deployment]
    serves: tuple[ServiceType, ...]

    def may_send(self, channel: Channel) -> bool:
        return any(channel in SENDS[service_type] for service_type in self.serves)

    def pairs(self) -> Iterable[tuple[Deployment, ServiceType, ProviderName]]:
        return ((one, service_type, self.provider) for one in self.deployments for service_type in self.serves)


KINDS: Final = (
    FactoryKind("KafkaMonolithQueueFactory", "kafka", _TOGETHER, _CORE + _RULE_ENGINE + _VERSION_CONTROL),
    FactoryKind("KafkaTbCoreQueueFactory", "kafka", _APART, _CORE),
    FactoryKind("KafkaTbRuleEngineQueueFactory", "kafka", _APART, _RULE_ENGINE),
    FactoryKind("KafkaTbTransportQueueFactory", "kafka", _TOGETHER | _APART, _TRANSPORT),
    FactoryKind("KafkaEdqsQueueFactory", "kafka", _APART, _EDQS),
    FactoryKind("InMemoryMonolithQueueFactory", "in-memory", _TOGETHER, _CORE + _RULE_ENGINE),
    FactoryKind("InMemoryTbTransportQueueFactory", "in-memory", _TOGETHER | _APART, _TRANSPORT),
    # Ours: durable like Kafka, so everything Kafka has.
    FactoryKind("LogMonolithQueueFactory", "log", _TOGETHER, _CORE + _RULE_ENGINE + _VERSION_CONTROL),
    FactoryKind("LogTbCoreQueueFactory", "log", _APART, _CORE),
    FactoryKind("LogTbRuleEngineQueueFactory", "log", _APART, _RULE_ENGINE),
    FactoryKind("LogTbTransportQueueFactory", "log", _TOGETHER | _APART, _TRANSPORT),
    FactoryKind("LogEdqsQueueFactory", "log", _APART, _EDQS),
)


def find_kind(deployment: Deployment | str, service_type: ServiceType | str, provider: ProviderName) -> FactoryKind:
    """The factory for these. ConfigurationError lists what there is."""
    try:
        wanted = (Deployment(deployment), ServiceType.of(service_type), provider)
    except ValueError:
        known = ", ".join(Deployment)
        raise ConfigurationError(f"there is no deployment {deployment!r}; choose one of {known}") from None
    for kind in KINDS:
        if wanted in kind.pairs():
            return kind
    there = "; ".join(sorted(f"{kind.name} ({_described(kind)})" for kind in KINDS))
    raise ConfigurationError(f"there is no queue factory for {', '.join(wanted)}. There are: {there}")


def _described(kind: FactoryKind) -> str:
    return f"{'/'.join(sorted(kind.deployments))}, {'/'.join(kind.serves)}, {kind.provider}"
