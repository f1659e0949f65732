"""The programs that show requests and responses do what they say, and what they show holds beyond what they say."""

import asyncio
import json
import resource
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from examples.entity_queries import Core, EntityService, Partitions
from examples.entity_selection import Entity, InvalidQuery, Query
from examples.script_executor import RuleEngine, ScriptExecutor, Scripts, hash_of
from examples.script_sandbox import MAX_RESULT, Sandbox, ScriptError
from examples.transport_api import Core as TransportCore
from examples.transport_api import Database, Transport
from queuecore import Channel, MemoryProvider, Provider, QueueMessage, QueueSettings, open_provider
from queuecore.errors import RequestFailed
from queuecore.requests import RequestTemplate, RequestTopics
from queuecore.testing.services import KafkaService
from queuecore.testing.waiting import wait_until
from tests.integration.test_examples import ROOT, run

SCRIPTS = [
    '60 messages, the last became {"degrees": 138.2, "of": "device-59"}',
    "executors that ran some of them: 2",
    "an endless loop: script_timed_out, the script took longer than 0.25 s",
    "a slow regular expression: script_timed_out, the script took longer than 0.25 s",
    "a memory bomb: script_out_of_memory, the script needs more than 16777216 bytes",
    "a recursion without end: script_failed, InternalError: stack overflow",
    'a look around: ["undefined", "undefined", "undefined", "undefined", "undefined"]',
    "a typing error: script_failed, SyntaxError: unexpected token in expression: ')'",
    "after all that: 42",
]
ENTITIES = [
    "acme: 5 warm devices in the hall, the warmest are device-29 29, device-27 27, device-25 25",
    "globex: 5 warm devices in the hall, the warmest are device-29 30, device-27 28, device-25 26",
    "initech: 6 warm devices in the hall, the warmest are device-29 31, device-27 29, device-25 27",
    "acme's second page has 10 of 30 devices",
    "invalid_query: there is no comparison '~'; use = != < <= > >=",
    "both services are started again",
    "acme: 5 warm devices in the hall, the warmest are device-01 99, device-27 27, device-25 25",
    "globex: 5 warm devices in the hall, the warmest are device-29 30, device-27 28, device-25 26",
    "initech: 6 warm devices in the hall, the warmest are device-29 31, device-27 29, device-25 27",
]
TRANSPORT = [
    "20 devices connected, with 20 sessions; when they came again, with the same",
    "a stranger: unknown_device, no device has these credentials",
    (
        "a slow core: request_timeout, no answer from {prefix}tb_transport.api.requests within 300 ms; whether it was "
        "worked on is not known, so ask again only what may be done twice"
    ),
    (
        "one more than may wait: too_many_requests, 8 requests to {prefix}tb_transport.api.requests wait for their "
        "answers, which is the most; try again later, look at the responders, or raise max_pending_requests"
    ),
    "the database is back: 8 that waited have their answer, device-2",
    "requests: 90 sent, 88 answered, 1 failed, 1 timed out, 1 refused",
]
EXAMPLES = [("script_executor.py", SCRIPTS), ("entity_queries.py", ENTITIES), ("transport_api.py", TRANSPORT)]


def named(said: list[str], prefix: str) -> list[str]:
    return [line.replace("{prefix}", prefix) for line in said]


@pytest.mark.parametrize("provider", ["log", "in-memory"])
@pytest.mark.parametrize(("program", "said"), EXAMPLES)
def test_an_example(tmp_path: Path, program: str, said: list[str], provider: str) -> None:
    assert run([str(ROOT / "examples" / program), "--provider", provider], tmp_path) == named(said, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("program", "said"), EXAMPLES)
def test_an_example_on_kafka(tmp_path: Path, kafka_service: KafkaService, program: str, said: list[str]) -> None:
    where = ["--provider", "kafka", "--servers", kafka_service.bootstrap_servers, "--prefix", "shown"]
    assert run([str(ROOT / "examples" / program), *where], tmp_path) == named(said, "shown.")


@pytest.mark.parametrize(("program", "said"), EXAMPLES[1:])
def test_an_example_goes_on_in_a_log_that_is_there(tmp_path: Path, program: str, said: list[str]) -> None:
    for _ in range(2):
        where = ["--provider", "log", "--folder", "kept"]
        assert run([str(ROOT / "examples" / program), *where], tmp_path) == named(said, "")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with closing(Sandbox()) as one:
        yield one


@pytest.fixture
def provider() -> Iterator[Provider]:
    with closing(open_provider("in-memory")) as one:
        yield one


class TestSandbox:
    """Whatever a script does, it ends with an error that has a code, and the next one runs."""

    @pytest.mark.parametrize(
        ("source", "code"),
        [
            ("() => { while (true) {} }", "script_timed_out"),
            ("() => { while (true) { try { while (true) {} } catch (error) {} } }", "script_timed_out"),
            ("() => ({ toJSON() { while (true) {} } })", "script_timed_out"),
            ("(() => { while (true) {} })()", "script_timed_out"),
            # The engine does not look at its clock meanwhile.
            ("() => /^(a+)+$/.test('a'.repeat(50) + 'b')", "script_timed_out"),
            ("() => new Array(1e9).join('x').length", "script_timed_out"),
            ("() => { const all = []; while (true) all.push(new Array(1e5)) }", "script_out_of_memory"),
            ("() => { let all = 'x'; while (true) all += all }", "script_out_of_memory"),
            ("() => new ArrayBuffer(2 ** 30).byteLength", "script_out_of_memory"),
            ("() => 10n ** 100000000n", "script_out_of_memory"),
            ("() => { const f = () => f() + 1; return f() }", "script_failed"),
            ("() => { let all = []; for (let n = 0; n < 1e4; n++) all = [all]; return all }", "script_failed"),
            ("() => { let all = []; for (let n = 0; n < 300; n++) all = [all]; return all }", "script_failed"),
            ("() => 'x'.repeat(2 ** 30)", "script_failed"),
            (f"() => 'x'.repeat({MAX_RESULT})", "script_failed"),
            ("() => { throw new Error('no') }", "script_failed"),
            ("() => { throw undefined }", "script_failed"),
            ("() => 1n", "script_failed"),
            ("'no function'", "script_failed"),
            ("() => {", "script_failed"),
            ("", "script_failed"),
        ],
    )
    def test_a_script_that_has_no_result(self, sandbox: Sandbox, source: str, code: str) -> None:
        with pytest.raises(ScriptError) as raised:
            sandbox.run(source, "[]")
        assert raised.value.code == code
        assert sandbox.run("(a, b) => a + b", "[20, 22]") == "42"

    @pytest.mark.parametrize(
        ("source", "result"),
        [
            ("message => ({ twice: message.value * 2 })", {"twice": 42}),
            ("function named(message) { return [message, 'ü', null] }", [{"value": 21}, "ü", None]),
            ("() => undefined", None),
            ("() => NaN", None),
            ("() => false", False),
            ("() => 'ü'.repeat(1e6).length", 1_000_000),
            ("() => 'ü'.repeat(1e6)", "ü" * 1_000_000),
            ("() => 1 // with a comment", 1),
        ],
    )
    def test_a_result(self, sandbox: Sandbox, source: str, result: object) -> None:
        assert json.loads(sandbox.run(source, '[{"value": 21}]')) == result

    def test_scripts_see_nothing_of_each_other(self, sandbox: Sandbox) -> None:
        leave = "() => { globalThis.left = 'secret'; Array.prototype.map = () => 'mine'; Object.prototype.x = 1 }"
        look = "() => [typeof left, [1].map(one => one), typeof ({}).x]"
        sandbox.run(leave, "[]")
        assert json.loads(sandbox.run(look, "[]")) == ["undefined", [1], "undefined"]
        counting = "() => globalThis.count = (globalThis.count ?? 0) + 1"
        assert [sandbox.run(counting, "[]") for _ in range(2)] == ["1", "1"]

    def test_a_script_finds_nothing_but_the_language(self, sandbox: Sandbox) -> None:
        names = json.loads(sandbox.run("() => Object.getOwnPropertyNames(globalThis)", "[]"))
        assert {"Object", "JSON", "Math"} < set(names)
        host = "process require module std os scriptArgs print console fetch XMLHttpRequest WebSocket Worker Deno Bun"
        assert not set(names) & set(host.split())
        made = "() => (function () {}).constructor('return typeof process + typeof require + typeof std')()"
        assert json.loads(sandbox.run(made, "[]")) == "undefined" * 3
        stack = "() => { try { null.x } catch (error) { return error.stack } }"
        assert str(ROOT) not in sandbox.run(stack, "[]")

    def test_no_module_can_be_imported(self, sandbox: Sandbox) -> None:
        with pytest.raises(ScriptError, match="SyntaxError"):
            sandbox.run("import * as os from 'os'", "[]")
        for module in ("os", "std", "/etc/hostname", "file:///etc/hostname"):
            # A promise is never settled here: nobody runs what is to happen later.
            source = f"() => {{ let got = 'nothing'; import('{module}').then(it => got = it); return got }}"
            assert json.loads(sandbox.run(source, "[]")) == "nothing"

    def test_arguments_are_data(self, sandbox: Sandbox) -> None:
        hostile = ["'); while (true) {} ('", '"]; globalThis.x = 1; ["', {"__proto__": {"x": 1}}]
        source = "(...args) => [args.length, typeof x, ({}).x === undefined]"
        assert json.loads(sandbox.run(source, json.dumps(hostile))) == [3, "undefined", True]

    def test_a_script_that_lies_about_its_result_hurts_nobody_else(self, sandbox: Sandbox) -> None:
        assert sandbox.run("() => ({ toJSON: () => 'mine' })", "[]") == '"mine"'
        for lie in ("7", "'{'", "'9'.repeat(5000)"):
            with pytest.raises(ScriptError, match="no JSON"):
                sandbox.run(f"(() => {{ JSON.stringify = () => {lie}; return () => 1 }})()", "[]")
        assert sandbox.run("() => 1", "[]") == "1"

    def test_the_process_has_nothing_of_its_host(self, sandbox: Sandbox) -> None:
        pid = sandbox.process_id
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (0, 0)
        assert resource.prlimit(pid, resource.RLIMIT_AS)[0] < 2**30

    def test_a_process_that_dies_is_replaced(self, sandbox: Sandbox) -> None:
        before = sandbox.process_id
        with pytest.raises(ScriptError, match="took longer"):
            sandbox.run("() => /^(a+)+$/.test('a'.repeat(50) + 'b')", "[]")
        assert sandbox.process_id != before
        wait_until(lambda: not Path(f"/proc/{before}").exists())

    def test_closing_it_ends_the_process(self) -> None:
        one = Sandbox()
        one.close()
        assert not Path(f"/proc/{one.process_id}").exists()


class TestScriptExecutor:
    @pytest.fixture
    def executor(self, provider: Provider) -> Iterator[ScriptExecutor]:
        with ScriptExecutor(provider, QueueSettings()) as one:
            yield one

    @pytest.fixture
    def engine(self, provider: Provider, executor: ScriptExecutor) -> Iterator[RuleEngine]:
        with RequestTemplate(provider, executor.responses.topics, "re-1") as template:
            yield RuleEngine(template)

    def test_a_script_is_learnt_once(self, engine: RuleEngine) -> None:
        assert [engine.eval("one => one + 1", number) for number in range(3)] == [1, 2, 3]
        # The first was asked twice.
        assert engine.template.counts.sent == 4

    def test_a_script_that_is_registered_is_known(self, engine: RuleEngine) -> None:
        assert engine.register("() => 1") == hash_of("() => 1")
        assert engine.eval("() => 1") == 1
        assert engine.template.counts.sent == 2

    def test_what_is_no_script_is_not_registered(self, engine: RuleEngine) -> None:
        with pytest.raises(RequestFailed, match="SyntaxError") as raised:
            engine.register("() => {")
        assert raised.value.error_code == "script_failed"
        with pytest.raises(RequestFailed) as raised:
            engine.ask({"hash": hash_of("() => {"), "args": []})
        assert raised.value.error_code == "unknown_script"

    def test_others_go_on_beside_an_endless_loop(self, engine: RuleEngine) -> None:
        engine.register("one => one")
        endless = json.dumps({"source": "() => { while (true) {} }", "args": []}).encode()
        hanging = engine.template.send(endless)
        assert [engine.eval("one => one", number) for number in range(20)] == list(range(20))
        error = hanging.exception()
        assert isinstance(error, RequestFailed)
        assert error.error_code == "script_timed_out"

    def test_more_hostile_scripts_than_sandboxes(self, engine: RuleEngine) -> None:
        sources = ["() => { const all = []; while (true) all.push(new Array(1e5)) }", "() => { while (true) {} }"] * 3
        asked = [engine.template.send(json.dumps({"source": one, "args": []}).encode()) for one in sources]
        codes = [getattr(one.exception(), "error_code", None) for one in asked]
        assert codes == ["script_out_of_memory", "script_timed_out"] * 3
        assert engine.eval("() => 1") == 1

    def test_scripts_not_used_for_long_are_forgotten(self) -> None:
        scripts = Scripts(most=2)
        first, second = scripts.add("1"), scripts.add("2")
        assert scripts.get(first) == "1"
        scripts.add("3")
        assert scripts.get(first) == "1"
        with pytest.raises(RequestFailed, match="send its source"):
            scripts.get(second)


class TestQuery:
    ALL: list[Entity] = [
        {"id": "b", "type": "device", "degrees": 20, "room": "hall"},
        {"id": "a", "type": "device", "degrees": 20.5, "room": "attic"},
        {"id": "d", "type": "device", "degrees": 20, "room": "attic"},
        {"id": "c", "type": "device", "degrees": "unknown"},
        {"id": "e", "type": "device", "degrees": None},
        {"id": "a", "type": "asset"},
    ]

    @staticmethod
    def ids(query: Query) -> str:
        found = Query.read(json.dumps({name: getattr(query, name) for name in Query.__slots__}).encode())
        entities = found.select(TestQuery.ALL)["entities"]
        assert isinstance(entities, list)
        return "".join(one["id"] for one in entities)

    @pytest.mark.parametrize(
        ("query", "ids"),
        [
            (Query("device"), "abcde"),
            (Query("asset"), "a"),
            (Query("customer"), ""),
            (Query("device", where=[("degrees", "=", 20)]), "bd"),
            (Query("device", where=[("degrees", "!=", 20)]), "a"),
            (Query("device", where=[("degrees", ">", 20)]), "a"),
            (Query("device", where=[("degrees", ">=", 20), ("room", "=", "attic")]), "ad"),
            (Query("device", where=[("degrees", "<", 20.5)]), "bd"),
            (Query("device", where=[("degrees", "<=", "z")]), "c"),
            (Query("device", where=[("colour", "!=", "red")]), ""),
            (Query("device", sort="degrees"), "bdace"),
            (Query("device", sort="degrees", descending=True), "cabde"),
            (Query("device", sort="room"), "adbce"),
            (Query("device", size=2), "ab"),
            (Query("device", size=2, page=2), "e"),
            (Query("device", size=2, page=3), ""),
        ],
    )
    def test_what_is_found(self, query: Query, ids: str) -> None:
        assert self.ids(query) == ids

    def test_the_total_is_of_all_pages(self) -> None:
        assert Query("device", size=1, page=4).select(self.ALL)["total"] == 5

    @pytest.mark.parametrize(
        "data",
        [
            *(b"", b"7", b"{}", b'{"type": "device", "colour": 1}', b'{"type": "device", "where": [["degrees", ">"]]}'),
            *(b'{"type": "device", "where": 7}', b'{"type": "device", "where": [["degrees", "~", 1]]}'),
            *(b'{"type": "device", "page": -1}', b'{"type": "device", "size": 0}', b'{"type": "device", "size": "x"}'),
        ],
    )
    def test_what_is_no_query(self, data: bytes) -> None:
        with pytest.raises(InvalidQuery):
            Query.read(data)


class TestEntityService:
    @pytest.fixture
    def partitions(self, provider: Provider) -> Partitions:
        made = Partitions(QueueSettings())
        made.create(provider)
        return made

    @pytest.fixture
    def core(self, provider: Provider, partitions: Partitions) -> Iterator[Core]:
        with RequestTemplate(provider, partitions.requests, "core-1") as template:
            yield Core(provider, partitions, template)

    def test_changes_that_do_not_come_are_told(self, provider: Provider, partitions: Partitions, core: Core) -> None:
        message = QueueMessage(b"acme", b'{"type": "device"}', {"changes": b"7"})
        with EntityService(provider, partitions, range(partitions.count)):
            error = core.template.send(message, timeout_ms=4_000).exception()
        assert isinstance(error, RequestFailed)
        assert error.error_code == "not_up_to_date"

    def ids(self, core: Core, tenant: str) -> list[str]:
        answer = asyncio.run(core.ask(tenant, Query("device")))
        return [one["id"] for one in answer["entities"]]

    def test_who_changes_something_finds_it(self, provider: Provider, partitions: Partitions, core: Core) -> None:
        with EntityService(provider, partitions, range(partitions.count)):
            for number in range(20):
                core.publish("acme", [{"id": f"{number:02}", "type": "device"}])
                assert asyncio.run(core.ask("acme", Query("device")))["total"] == number + 1
            core.delete("acme", {"id": "00"})
            assert self.ids(core, "acme")[0] == "01"

    def test_tenants_see_their_own(self, provider: Provider, partitions: Partitions, core: Core) -> None:
        tenants = [f"tenant-{number}" for number in range(2 * partitions.count)]
        with EntityService(provider, partitions, range(partitions.count)):
            for tenant in tenants:
                core.publish(tenant, [{"id": f"device of {tenant}", "type": "device"}])
            assert [self.ids(core, tenant) for tenant in tenants] == [[f"device of {tenant}"] for tenant in tenants]

    def test_a_service_that_is_started_again_needs_no_events(
        self, provider: Provider, partitions: Partitions, core: Core
    ) -> None:
        with EntityService(provider, partitions, range(partitions.count)):
            core.publish("acme", [{"id": one, "type": "device"} for one in "abc"])
            core.delete("acme", {"id": "b"})
            assert self.ids(core, "acme") == ["a", "c"]
        events = partitions.info(Channel.EDQS_EVENTS, partitions.number("acme")).place
        provider.admin().delete_records({events: 4})
        with EntityService(provider, partitions, range(partitions.count)) as again:
            assert self.ids(core, "acme") == ["a", "c"]
            assert again.taken == 0
            core.publish("acme", [{"id": "d", "type": "device"}])
            assert self.ids(core, "acme") == ["a", "c", "d"]

    def test_what_happened_while_no_service_was_there(
        self, provider: Provider, partitions: Partitions, core: Core
    ) -> None:
        core.publish("acme", [{"id": "a", "type": "device"}])
        with EntityService(provider, partitions, range(partitions.count)):
            assert self.ids(core, "acme") == ["a"]

    def test_a_query_waits_for_changes_that_are_under_way(
        self, provider: Provider, partitions: Partitions, core: Core
    ) -> None:
        message = QueueMessage(b"acme", b'{"type": "device"}', {"changes": b"7"})
        with EntityService(provider, partitions, range(partitions.count)) as service:
            asked = core.template.send(message)
            wait_until(lambda: service.responses.counts.pending)
            core.publish("acme", [{"id": str(number), "type": "device"} for number in range(7)])
            assert json.loads(asked.result().data)["total"] == 7


class TestTransportApi:
    @pytest.fixture
    def cores(self, provider: Provider) -> Iterator[list[TransportCore]]:
        database = Database({f"token-{number}": f"device-{number}" for number in range(40)})
        with ExitStack() as stopping:
            cores = [TransportCore(provider, QueueSettings(), database) for _ in range(2)]
            for core in cores:
                stopping.enter_context(core.responses)
            wait_until(lambda: all(len(core.responses.partitions) == 5 for core in cores))
            yield cores

    @pytest.fixture
    def transport(self, provider: Provider, cores: list[TransportCore]) -> Iterator[Transport]:
        with RequestTemplate(provider, cores[0].responses.topics, "transport-1") as template:
            yield Transport(template)

    def test_a_device_has_one_session_with_one_of_the_cores(
        self, transport: Transport, cores: list[TransportCore]
    ) -> None:
        tokens = [f"token-{number}" for number in range(40)]
        first, again = ([transport.connect(token) for token in tokens] for _ in range(2))
        assert first == again
        assert len(set(first)) == 40
        assert sorted([*cores[0].sessions, *cores[1].sessions]) == sorted(f"device-{number}" for number in range(40))
        assert all(core.sessions for core in cores)

    def test_an_error_names_no_token(self, transport: Transport) -> None:
        with pytest.raises(RequestFailed) as raised:
            transport.connect("guessed-secret")
        assert raised.value.error_code == "unknown_device"
        assert "secret" not in str(raised.value)

    def test_what_a_core_does_not_know(self, transport: Transport) -> None:
        with pytest.raises(RequestFailed, match="'dance'") as raised:
            transport.ask(None, None, ask="dance")
        assert raised.value.error_code == "unknown_request"


def test_the_topics_are_those_of_the_platform() -> None:
    names = {
        Channel.JS_REQUESTS: ("js_eval.requests", "js_eval.responses.me"),
        Channel.EDQS_REQUESTS: ("edqs.requests", "edqs.responses.me"),
        Channel.TRANSPORT_API_REQUESTS: ("tb_transport.api.requests", "tb_transport.api.responses.me"),
    }
    for channel, (requests, responses) in names.items():
        topics = RequestTopics.of(channel, QueueSettings())
        template = RequestTemplate(MemoryProvider(), topics, "me")
        assert (topics.name, template.response_topic) == (requests, responses)
