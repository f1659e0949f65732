"""A consumer for each channel. Which of them a factory gives is its kind's business.

Where a queue's partitions are assigned to its readers, a consumer of one `partition` has a group of its own, as each
of a host's has, and takes the place of the one before it; without one, consumers share the queue as a group.
"""

from abc import ABC, abstractmethod
from uuid import UUID

from queuecore.factories.channels import Channel
from queuecore.providers.base import QueueConsumer


class Consumers(ABC):
    """The protocols say which of these a service type has; the others raise NotSupported."""

    @abstractmethod
    def consumer(self, channel: Channel, *, partition: int | None = None, member: str = "") -> QueueConsumer:
        """A consumer of the channel, in its group; not yet subscribed. Its callers stop it."""

    def core_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.CORE, partition=partition)

    def core_notifications_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.CORE_NOTIFICATIONS)

    def rule_engine_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.RULE_ENGINE, partition=partition)

    def rule_engine_notifications_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.RULE_ENGINE_NOTIFICATIONS)

    def transport_notifications_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.TRANSPORT_NOTIFICATIONS)

    def transport_api_requests_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.TRANSPORT_API_REQUESTS)

    def transport_api_responses_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.TRANSPORT_API_RESPONSES)

    def edge_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.EDGE, partition=partition)

    def edge_notifications_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.EDGE_NOTIFICATIONS)

    def edge_events_consumer(self, edge_id: UUID | str) -> QueueConsumer:
        return self.consumer(Channel.EDGE_EVENTS, member=str(edge_id))

    def usage_stats_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.USAGE_STATS)

    def ota_packages_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.OTA_PACKAGES)

    def housekeeper_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.HOUSEKEEPER)

    def housekeeper_reprocessing_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.HOUSEKEEPER_REPROCESSING)

    def version_control_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.VERSION_CONTROL, partition=partition)

    def calculated_fields_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.CALCULATED_FIELDS, partition=partition)

    def calculated_field_states_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.CALCULATED_FIELD_STATES, partition=partition)

    def js_responses_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.JS_RESPONSES)

    def edqs_events_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.EDQS_EVENTS, partition=partition)

    def edqs_state_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.EDQS_STATE, partition=partition)

    def edqs_requests_consumer(self, partition: int | None = None) -> QueueConsumer:
        return self.consumer(Channel.EDQS_REQUESTS, partition=partition)

    def edqs_responses_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.EDQS_RESPONSES)

    def job_stats_consumer(self) -> QueueConsumer:
        return self.consumer(Channel.JOB_STATS)
