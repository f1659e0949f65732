"""Telling one instance, or all of a type."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future

from queuecore.clock import SYSTEM_CLOCK, Clock
from queuecore.cluster.notifications.names import DEFAULT_SETTINGS, notification_address
from queuecore.cluster.services import ServiceInfo, named_services, unknown_service
from queuecore.config.queue_tree import QueueSettings
from queuecore.encoding import origin_headers
from queuecore.errors import QueueError, UnknownService
from queuecore.messages import QueueMessage, RecordMetadata
from queuecore.providers.base import QueueProducer
from queuecore.sending import send
from queuecore.topics import ServiceType

Directory = Callable[[], Mapping[str, ServiceInfo]]


class Notifier:
    """Sends notifications. Safe from any thread.

    producer     lent: whoever made it stops it
    directory    who is there now, by id
    producer_id  who sends, for the header `producerId`
    """

    def __init__(
        self,
        producer: QueueProducer,
        directory: Directory,
        settings: QueueSettings = DEFAULT_SETTINGS,
        *,
        producer_id: str,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._producer = producer
        self._directory = directory
        self._settings = settings
        self._producer_id = producer_id
        self._clock = clock

    def notify(
        self, service_id: str, message: QueueMessage, service_type: ServiceType | None = None
    ) -> "Future[RecordMetadata]":
        """Send to one instance, as one of this type; by default of its main one. The future ends with where the message
        is stored, or with the QueueError that says why it is not. UnknownService where there is no instance of that id,
        or it is not of that type; ProviderUnavailable when the provider's buffer stays full."""
        services = self._directory()
        if (service := services.get(service_id)) is None:
            raise unknown_service(service_id, services)
        wanted = service_type or service.service_types[0]
        if wanted not in service.service_types:
            raise _not_of_type(service, wanted, services)
        return self._send(service_id, wanted, message)

    def notify_all(self, service_type: ServiceType, message: QueueMessage) -> "dict[str, Future[RecordMetadata]]":
        """Send to every instance of a type; what became of it for each, by id. One that cannot be told keeps no other
        from being told. Empty where there is none: then there is nobody to tell."""
        told: dict[str, Future[RecordMetadata]] = {}
        for service_id in sorted(_of_type(service_type, self._directory())):
            try:
                told[service_id] = self._send(service_id, service_type, message)
            except QueueError as error:
                told[service_id] = Future()
                told[service_id].set_exception(error)
        return told

    def _send(self, service_id: str, service_type: ServiceType, message: QueueMessage) -> "Future[RecordMetadata]":
        origin = origin_headers(self._producer_id, self._clock.now_ms())
        address = notification_address(service_id, service_type, self._settings)
        return send(self._producer, address, message._replace(headers={**message.headers, **origin}))


def _of_type(service_type: ServiceType, services: Mapping[str, ServiceInfo]) -> list[str]:
    return [one.service_id for one in services.values() if service_type in one.service_types]


def _not_of_type(service: ServiceInfo, wanted: ServiceType, services: Mapping[str, ServiceInfo]) -> UnknownService:
    return UnknownService(
        f"service {service.service_id!r} is of {', '.join(service.service_types)}, not of {wanted}; name one of its "
        f"types, or tell one of those that are: {named_services(_of_type(wanted, services))}",
        service_id=service.service_id,
        service_type=str(wanted),
    )
