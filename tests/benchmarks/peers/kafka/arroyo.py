"""sentry-arroyo: a task for each message, then its commit strategy, with the policy it has by default."""

from collections.abc import Mapping
from typing import Any

from arroyo.backends.kafka import KafkaConsumer, KafkaPayload
from arroyo.backends.kafka.configuration import build_kafka_consumer_configuration
from arroyo.commit import ONCE_PER_SECOND
from arroyo.processing import StreamProcessor
from arroyo.processing.strategies import CommitOffsets, ProcessingStrategy, ProcessingStrategyFactory, RunTask
from arroyo.types import Commit, Message, Partition, Topic

from tests.benchmarks.peers.kafka.work import Task, Work


class Reporting(KafkaConsumer):
    """Tells when the last commit is through."""

    def __init__(self, configuration: Mapping[str, Any], work: Work) -> None:
        super().__init__(configuration)
        self._work = work

    def commit_offsets(self) -> Mapping[Partition, int] | None:
        committed = super().commit_offsets()
        if self._work.is_done:
            self._work.report()
        return committed


class Summing(ProcessingStrategyFactory[KafkaPayload]):
    def __init__(self, work: Work) -> None:
        self._work = work
        self.processor: StreamProcessor[KafkaPayload] | None = None

    def create_with_partitions(
        self, commit: Commit, partitions: Mapping[Partition, int]
    ) -> ProcessingStrategy[KafkaPayload]:
        return RunTask(self._handle, CommitOffsets(commit))

    def _handle(self, message: Message[KafkaPayload]) -> None:
        self._work.handle(message.payload.value)
        if self._work.is_done:
            self.processor.signal_shutdown()


def main(task: Task) -> None:
    work = Work(task.messages)
    configuration = build_kafka_consumer_configuration(
        {}, task.group, bootstrap_servers=[task.servers], enable_auto_commit=False
    )
    configuration |= task.fetching
    summing = Summing(work)
    summing.processor = StreamProcessor(
        Reporting(configuration, work), Topic(task.topic), summing, commit_policy=ONCE_PER_SECOND
    )
    summing.processor.run()


if __name__ == "__main__":
    main(Task.of_arguments())
