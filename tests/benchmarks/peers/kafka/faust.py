"""faust-streaming: an agent on uvloop, with payloads left as they are, and without its web server."""

import asyncio
import os
import signal

import faust

from tests.benchmarks.peers.kafka.work import COMMIT_EVERY, Task, Work


def main(task: Task) -> None:
    work = Work(task.messages)
    app = faust.App(
        task.group,
        broker=f"kafka://{task.servers}",
        store="memory://",
        broker_commit_every=COMMIT_EVERY,
        broker_max_poll_records=COMMIT_EVERY,
        # Of how librdkafka fetches this is all that aiokafka knows too: it fetches again whenever a partition runs low.
        consumer_max_fetch_size=task.fetching["max.partition.fetch.bytes"],
        web_enabled=False,
        topic_disable_leader=True,
        worker_redirect_stdouts=False,
    )
    topic = app.topic(task.topic, key_serializer="raw", value_serializer="raw", internal=False)

    async def commit_and_end() -> None:
        while not await app.consumer.commit():
            await asyncio.sleep(0)
        work.report()
        os.kill(os.getpid(), signal.SIGTERM)

    @app.agent(topic)
    async def add_up(stream: faust.Stream) -> None:
        async for data in stream:
            work.handle(data)
            if work.is_done:
                app.loop.create_task(commit_and_end())

    faust.Worker(app, loglevel="ERROR", redirect_stdouts=False).execute_from_commandline()


if __name__ == "__main__":
    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    main(Task.of_arguments())
