"""A rule engine has its users' JavaScript run by script executors, which share the work and can be killed by no script.

    python examples/script_executor.py
    python examples/script_executor.py --provider log --folder var/scripts
    python examples/script_executor.py --provider kafka --servers localhost:9092

    rule engine ──(js_eval.requests)──> executor-1 or executor-2 ──> a sandbox, which is a process of its own
    rule engine <──(js_eval.responses.re-1)──────┘

A script is a function, known by the hash of its source. An executor that does not know it says `unknown_script`, and is
sent the source in the next request: sources do not travel with each message. What is wrong
with a script is told by a code: `script_failed`, `script_timed_out`, `script_out_of_memory`. It ends by itself.
"""

import argparse
import hashlib
import json
import queue
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a checkout

from examples.script_sandbox import Sandbox, ScriptError
from queuecore import Channel, Provider, QueueSettings, open_provider
from queuecore.errors import RequestFailed
from queuecore.requests import Request, RequestTemplate, RequestTopics, ResponseOptions, ResponseTemplate
from queuecore.testing.waiting import wait_until

MESSAGES = 60
SANDBOXES = 2
TO_FAHRENHEIT = "(message, metadata) => ({ degrees: message.celsius * 1.8 + 32, of: metadata.device })"
HOSTILE = {
    "an endless loop": "() => { while (true) {} }",
    "a slow regular expression": "() => /^(a+)+$/.test('a'.repeat(50) + 'b')",
    "a memory bomb": "() => { const all = []; while (true) all.push(new Array(1e5)) }",
    "a recursion without end": "() => { const f = () => f() + 1; return f() }",
    "a look around": "() => [typeof process, typeof require, typeof fetch, typeof std, typeof os]",
    "a typing error": "() => {",
}


def hash_of(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


class Scripts:
    """Sources that were found to be functions, by their hashes; those not used for long are forgotten. QuickJS cannot
    take compiled code from one context to the next: what is spared is sending and checking. Safe from any thread."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._lock = Lock()
        self._sources: OrderedDict[str, str] = OrderedDict()

    def get(self, key: str) -> str:
        with self._lock:
            if key not in self._sources:
                raise RequestFailed(f"there is no script {key}; send its source", error_code="unknown_script")
            self._sources.move_to_end(key)
            return self._sources[key]

    def add(self, source: str) -> str:
        """Its hash, which nobody else says: one could give a script another's name."""
        key = hash_of(source)
        with self._lock:
            self._sources[key] = source
            if len(self._sources) > self._most:
                self._sources.popitem(last=False)
        return key


class ScriptExecutor:
    """Answers {"hash": ..., "args": [...]} with what the function returns, as JSON. With "source" in place of the hash
    it learns the script first, and without "args" that is all: the answer is then the hash. As many scripts run at the
    same time as it has sandboxes."""

    def __init__(self, provider: Provider, settings: QueueSettings, sandboxes: int = SANDBOXES) -> None:
        self.scripts = Scripts()
        self.sandboxes = [Sandbox() for _ in range(sandboxes)]
        self.free: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
        for sandbox in self.sandboxes:
            self.free.put(sandbox)
        topics = RequestTopics.of(Channel.JS_REQUESTS, settings)
        self.responses = ResponseTemplate(provider, topics, self.answer, ResponseOptions(concurrency=sandboxes))

    def answer(self, request: Request) -> bytes:
        asked = json.loads(request.data)
        try:
            with self.sandbox() as sandbox:
                key = self.learn(sandbox, asked["source"]) if "source" in asked else asked["hash"]
                if "args" not in asked:
                    return json.dumps(key).encode()
                return sandbox.run(self.scripts.get(key), json.dumps(asked["args"])).encode()
        except ScriptError as error:
            raise RequestFailed(str(error), error_code=error.code) from None

    def learn(self, sandbox: Sandbox, source: str) -> str:
        sandbox.compile(source)
        return self.scripts.add(source)

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        sandbox = self.free.get()
        try:
            yield sandbox
        finally:
            self.free.put(sandbox)

    def __enter__(self) -> Self:
        self.responses.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.responses.stop()
        for sandbox in self.sandboxes:
            sandbox.close()


class RuleEngine:
    """Has scripts run. Safe from any thread."""

    def __init__(self, template: RequestTemplate) -> None:
        self.template = template

    def register(self, source: str) -> str:
        """The script's hash; for when a user saves one. RequestFailed `script_failed` for what is no JavaScript."""
        return str(self.ask({"source": source}))

    def eval(self, source: str, *args: object) -> object:
        """What the function makes of these. RequestFailed with the code of what is wrong with it, RequestTimeout where
        no executor answers. It is asked twice only of an executor that did not know the script, and so ran nothing."""
        try:
            return self.ask({"hash": hash_of(source), "args": args})
        except RequestFailed as error:
            if error.error_code != "unknown_script":
                raise
        return self.ask({"source": source, "args": args})

    def ask(self, request: dict[str, object]) -> object:
        return json.loads(self.template.send(json.dumps(request).encode()).result().data)


def convert(engine: RuleEngine) -> None:
    """One script for many messages, from several threads."""
    with ThreadPoolExecutor(4) as threads:
        results = list(
            threads.map(
                lambda number: engine.eval(TO_FAHRENHEIT, {"celsius": number}, {"device": f"device-{number}"}),
                range(MESSAGES),
            )
        )
    print(f"{len(results)} messages, the last became {json.dumps(results[-1])}")


def try_hostile(engine: RuleEngine) -> None:
    for name, source in HOSTILE.items():
        try:
            print(f"{name}: {json.dumps(engine.eval(source))}")
        except RequestFailed as error:
            print(f"{name}: {error.error_code}, {error.message}")


def run(provider: Provider, settings: QueueSettings) -> None:
    with ExitStack() as stopping:
        executors = [stopping.enter_context(ScriptExecutor(provider, settings)) for _ in range(2)]
        template = RequestTemplate(provider, RequestTopics.of(Channel.JS_REQUESTS, settings), "re-1")
        engine = RuleEngine(stopping.enter_context(template))
        wait_until(lambda: all(len(one.responses.partitions) == 15 for one in executors))
        convert(engine)
        print(f"executors that ran some of them: {sum(one.responses.counts.answered > 0 for one in executors)}")
        try_hostile(engine)
        print(f"after all that: {engine.eval('(a, b) => a + b', 20, 22)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A rule engine has scripts run by executors.")
    parser.add_argument("--provider", choices=["in-memory", "log", "kafka"], default="in-memory")
    parser.add_argument("--folder", help="where the log keeps its files; by default a temporary folder")
    parser.add_argument("--servers", help="Kafka's brokers, as host:port,host:port")
    parser.add_argument("--prefix", default="", help="what all topics begin with, where others are on the same Kafka")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or temporary) if options.provider == "log" else None
        with closing(open_provider(options.provider, folder=folder, servers=options.servers)) as provider:
            run(provider, QueueSettings(prefix=options.prefix))


if __name__ == "__main__":
    main()
