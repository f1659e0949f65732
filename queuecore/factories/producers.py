"""A producer for each channel. Which of them a factory gives is its kind's business."""

from abc import ABC, abstractmethod

from queuecore.factories.channels import Channel
from queuecore.providers.base import QueueProducer


class Producers(ABC):
    """The protocols say which of these a service type has; the others raise NotSupported."""

    @abstractmethod
    def producer(self, channel: Channel) -> QueueProducer:
        """A producer whose default topic is the channel's. Its callers stop it."""

    def core_producer(self) -> QueueProducer:
        return self.producer(Channel.CORE)

    def core_notifications_producer(self) -> QueueProducer:
        return self.producer(Channel.CORE_NOTIFICATIONS)

    def rule_engine_producer(self) -> QueueProducer:
        return self.producer(Channel.RULE_ENGINE)

    def rule_engine_notifications_producer(self) -> QueueProducer:
        return self.producer(Channel.RULE_ENGINE_NOTIFICATIONS)

    def transport_notifications_producer(self) -> QueueProducer:
        return self.producer(Channel.TRANSPORT_NOTIFICATIONS)

    def transport_api_requests_producer(self) -> QueueProducer:
        return self.producer(Channel.TRANSPORT_API_REQUESTS)

    def transport_api_responses_producer(self) -> QueueProducer:
        return self.producer(Channel.TRANSPORT_API_RESPONSES)

    def edge_producer(self) -> QueueProducer:
        return self.producer(Channel.EDGE)

    def edge_notifications_producer(self) -> QueueProducer:
        return self.producer(Channel.EDGE_NOTIFICATIONS)

    def edge_events_producer(self) -> QueueProducer:
        return self.producer(Channel.EDGE_EVENTS)

    def usage_stats_producer(self) -> QueueProducer:
        return self.producer(Channel.USAGE_STATS)

    def ota_packages_producer(self) -> QueueProducer:
        return self.producer(Channel.OTA_PACKAGES)

    def housekeeper_producer(self) -> QueueProducer:
        return self.producer(Channel.HOUSEKEEPER)

    def housekeeper_reprocessing_producer(self) -> QueueProducer:
        return self.producer(Channel.HOUSEKEEPER_REPROCESSING)

    def version_control_producer(self) -> QueueProducer:
        return self.producer(Channel.VERSION_CONTROL)

    def calculated_fields_producer(self) -> QueueProducer:
        return self.producer(Channel.CALCULATED_FIELDS)

    def calculated_field_states_producer(self) -> QueueProducer:
        return self.producer(Channel.CALCULATED_FIELD_STATES)

    def js_requests_producer(self) -> QueueProducer:
        return self.producer(Channel.JS_REQUESTS)

    def edqs_events_producer(self) -> QueueProducer:
        return self.producer(Channel.EDQS_EVENTS)

    def edqs_state_producer(self) -> QueueProducer:
        return self.producer(Channel.EDQS_STATE)

    def edqs_requests_producer(self) -> QueueProducer:
        return self.producer(Channel.EDQS_REQUESTS)

    def edqs_responses_producer(self) -> QueueProducer:
        return self.producer(Channel.EDQS_RESPONSES)

    def tasks_producer(self) -> QueueProducer:
        return self.producer(Channel.TASKS)
