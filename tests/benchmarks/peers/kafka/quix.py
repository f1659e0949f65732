"""quixstreams: one update for each message, with payloads left as they are."""

from typing import Any

from quixstreams import Application

from tests.benchmarks.peers.kafka.work import COMMIT_EVERY, Task, Work


def main(task: Task) -> None:
    work = Work(task.messages)
    app = Application(
        task.servers,
        consumer_group=task.group,
        auto_offset_reset="earliest",
        commit_every=COMMIT_EVERY,
        consumer_extra_config=task.fetching,
        loglevel="ERROR",
        auto_create_topics=False,
        use_changelog_topics=False,
    )
    topic = app.topic(task.topic, value_deserializer="bytes", key_deserializer="bytes")

    def handle(data: bytes) -> None:
        work.handle(data)
        if work.is_done:
            app.stop()

    app.dataframe(topic).update(handle)
    _report_last_commit(app, work)
    app.run()


def _report_last_commit(app: Any, work: Work) -> None:
    """The application has no word for it: its consumer is looked at."""
    consumer = app._consumer
    commit = consumer.commit

    def reporting(*arguments: Any, **options: Any) -> Any:
        answer = commit(*arguments, **options)
        if work.is_done:
            work.report()
        return answer

    consumer.commit = reporting


if __name__ == "__main__":
    main(Task.of_arguments())
