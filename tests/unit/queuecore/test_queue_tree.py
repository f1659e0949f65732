"""The `queue:` tree: every key of the seeds, from YAML and from variables."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from queueapi.checks import check_queue_settings
from queueapi.config import Config
from queuecore.config import FILE_VARIABLE, describe, load
from queuecore.config.fields import leaves
from queuecore.config.provider_settings import KafkaSettings
from queuecore.config.queue_options import consumer_options, kafka_options, producer_options, queue_settings
from queuecore.config.queue_tree import HashName, QueueSettings
from queuecore.errors import ConfigurationError
from queuecore.hashing import HASH_FUNCTIONS
from queuecore.providers.options import DEFAULT_KAFKA, ConsumerOptions, KafkaOptions, KafkaSecurity, ProducerOptions

ROOT = Path(__file__).parents[3]
SEEDS = ROOT.parent / "shared" / "seeds"

# Every key that seeds 000 and 002 name, in their YAML or in their tables, with its default.
FROM_THE_SEEDS: dict[str, Any] = {
    "queue.prefix": "",
    "queue.pack-processing-timeout": 60_000,
    "queue.core.topic": "tb_core",
    "queue.core.partitions": 10,
    "queue.core.ota.topic": "tb_ota_package",
    "queue.core.usage-stats-topic": "tb_usage_stats",
    "queue.core.housekeeper.topic": "tb_housekeeper",
    "queue.rule-engine.topic": "tb_rule_engine",
    "queue.rule-engine.partitions": 10,
    "queue.rule-engine.replication-factor": 1,
    "queue.rule-engine.pack-processing-timeout": 60_000,
    "queue.rule-engine.submit-strategy.type": "BURST",
    "queue.rule-engine.submit-strategy.batch-size": 1_000,
    "queue.rule-engine.processing-strategy.type": "SKIP_ALL_FAILURES",
    "queue.rule-engine.dlq.enabled": True,
    "queue.rule-engine.dlq.topic": "",
    "queue.rule-engine.max-retries": 3,
    "queue.edge.topic": "tb_edge",
    "queue.edge.partitions": 10,
    "queue.vc.topic": "tb_version_control",
    "queue.vc.partitions": 10,
    "queue.edqs.partitions": 12,
    "queue.tasks.partitions": 12,
    "queue.partitions.count": 10,
    "queue.partitions.hash_function_name": "murmur3_128",
    "queue.kafka.bootstrap.servers": "localhost:9092",
    "queue.kafka.ssl.enabled": False,
    "queue.kafka.replication_factor": 1,
    "queue.kafka.acks": "all",
    "queue.kafka.retries": 1,
    "queue.kafka.compression.type": "none",
    "queue.kafka.batch.size": 16_384,
    "queue.kafka.linger.ms": 1,
    "queue.kafka.buffer.memory": 33_554_432,
    "queue.kafka.max.request.size": 1_048_576,
    "queue.kafka.auto.offset.reset": "earliest",
    "queue.kafka.session.timeout.ms": 10_000,
    "queue.kafka.max.poll.records": 8_192,
    "queue.kafka.max.poll.interval.ms": 300_000,
    "queue.kafka.max.partition.fetch.bytes": 16_777_216,
    # The seeds' examples say `kafka` and `in-memory`; a new installation has the durable log.
    "queue.type": "log",
}
TABLE_KEY = re.compile(r"^\|.*?\b(queue\.[a-z][\w.-]+)", re.MULTILINE)
KAFKA_ROW = re.compile(r"^\| ([a-z.]+) \| (\w+) \|", re.MULTILINE)

seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason="the seed documents are not beside this checkout")


@dataclasses.dataclass(frozen=True, slots=True)
class Root:
    queue: QueueSettings = dataclasses.field(default=QueueSettings(), metadata={"key": "", "section": True})


DEFAULTS = {leaf.key: leaf.default for leaf in leaves(Root)}
VARIABLES = {leaf.key: leaf.variable for leaf in leaves(Root)}


def seed(number: str) -> str:
    return next(SEEDS.glob(f"{number}_*")).read_text()


def yaml_blocks(text: str) -> Iterator[str]:
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        if block.startswith(("queue:", "queue.")):
            yield block


def flat(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        key = f"{above}{name}"
        if isinstance(value, dict):
            yield from flat(value, f"{key}.")
        else:
            yield key, value


def value_at(settings: QueueSettings, key: str) -> Any:
    value: Any = Root(settings)
    for name in next(leaf.names for leaf in leaves(Root) if leaf.key == key):
        value = getattr(value, name)
    return value


def tree(tmp_path: Path, text: str, **environ: str) -> QueueSettings:
    file = tmp_path / "queue.yaml"
    file.write_text(text)
    return queue_settings(environ, file)


def problem(tmp_path: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        tree(tmp_path, text, **environ)
    return str(caught.value).replace(str(tmp_path / "queue.yaml"), "FILE")


@pytest.mark.parametrize(("key", "default"), FROM_THE_SEEDS.items())
def test_every_key_of_the_seeds_has_its_default(key: str, default: Any) -> None:
    assert DEFAULTS[key] == default
    assert value_at(queue_settings({}), key) == default


@seeds
@pytest.mark.parametrize("number", ["000", "002"])
def test_the_list_above_has_every_key_that_the_seeds_write_in_yaml(number: str, tmp_path: Path) -> None:
    blocks = list(yaml_blocks(seed(number)))
    assert blocks
    for block in blocks:
        settings = tree(tmp_path, block)
        for key, value in flat(yaml.safe_load(block)):
            assert key in FROM_THE_SEEDS
            assert value_at(settings, key) == value
            assert key == "queue.type" or FROM_THE_SEEDS[key] == value


@seeds
@pytest.mark.parametrize(("number", "count"), [("000", 5), ("002", 6)])
def test_the_list_above_has_every_key_of_the_seeds_tables(number: str, count: int) -> None:
    keys = set(TABLE_KEY.findall(seed(number).partition("## Monitoring and Metrics")[0]))
    assert len(keys) == count
    assert keys <= FROM_THE_SEEDS.keys()


@seeds
def test_the_list_above_has_every_producer_and_consumer_setting_of_the_tables() -> None:
    text = seed("000")
    tables = text[text.index("**Producer Settings:**") : text.index("### In-Memory Provider")]
    rows = KAFKA_ROW.findall(tables)
    assert len(rows) == 11
    for name, default in rows:
        assert str(FROM_THE_SEEDS[f"queue.kafka.{name}"]) == default


@pytest.mark.parametrize("key", DEFAULTS)
def test_every_key_has_an_environment_twin(key: str) -> None:
    assert VARIABLES[key] == "SWITCHYARD_" + key.replace(".", "_").replace("-", "_").upper()
    assert VARIABLES[key] in {info.variable for info in describe(Config)}


def test_no_two_keys_share_a_twin() -> None:
    assert len(set(VARIABLES.values())) == len(VARIABLES)
    assert VARIABLES["queue.core.partitions"] == "SWITCHYARD_QUEUE_CORE_PARTITIONS"


def other(key: str) -> str:
    """A good value that is not the default."""
    leaf = next(leaf for leaf in leaves(Root) if leaf.key == key)
    if key == "queue.tasks.partitions_per_type":
        return "IMPORT:24;EXPORT:6"
    if leaf.metadata["is_mapping"]:
        return "statistics.interval.ms:5;debug:broker,topic"
    if choices := get_args(leaf.hint):
        return str(next(choice for choice in choices if choice != leaf.default))
    if isinstance(leaf.default, bool):
        return str(not leaf.default).lower()
    return str(leaf.default + 1) if isinstance(leaf.default, int) else "something_else"


@pytest.mark.parametrize("key", DEFAULTS)
def test_every_key_can_be_set_by_variable_and_by_file_to_the_same_effect(key: str, tmp_path: Path) -> None:
    by_variable = queue_settings({VARIABLES[key]: other(key)})
    by_file = tree(tmp_path, f"{key}: '{other(key)}'\n")

    assert value_at(by_variable, key) != DEFAULTS[key]
    assert by_variable == by_file


def test_a_variable_beats_the_file(tmp_path: Path) -> None:
    text = "queue:\n  core:\n    partitions: 20\n    topic: mine\n"
    settings = tree(tmp_path, text, SWITCHYARD_QUEUE_CORE_PARTITIONS="30")
    assert (settings.core.partitions, settings.core.topic) == (30, "mine")


@pytest.mark.parametrize(
    "text",
    [
        "queue:\n  core:\n    ota.topic: mine\n",
        "queue:\n  core:\n    ota:\n      topic: mine\n",
        "queue.core.ota.topic: mine\n",
    ],
)
def test_a_dot_is_a_level(text: str, tmp_path: Path) -> None:
    assert tree(tmp_path, text).core.ota_topic == "mine"


@pytest.mark.parametrize(
    ("general", "specific"),
    [
        ("queue.partitions.count", "queue.core.partitions"),
        ("queue.partitions.count", "queue.rule-engine.partitions"),
        ("queue.partitions.count", "queue.edge.partitions"),
        ("queue.partitions.count", "queue.vc.partitions"),
        ("queue.pack-processing-timeout", "queue.rule-engine.pack-processing-timeout"),
        ("queue.kafka.replication_factor", "queue.rule-engine.replication-factor"),
    ],
)
def test_a_general_setting_counts_where_the_special_one_is_not_set(general: str, specific: str, tmp_path: Path) -> None:
    assert DEFAULTS[general] == DEFAULTS[specific]
    assert value_at(tree(tmp_path, f"{general}: 7\n"), specific) == 7
    assert value_at(tree(tmp_path, f"{specific}: 8\n", **{VARIABLES[general]: "7"}), specific) == 8


def test_a_file_that_says_nothing_leaves_the_defaults(tmp_path: Path) -> None:
    assert tree(tmp_path, "") == tree(tmp_path, "queue:\n  core:\n") == QueueSettings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("queue:\n  cor: {}\n", "FILE, line 2: queue.cor is not a setting; did you mean queue.core?"),
        (
            "queue:\n  core:\n    partition: 3\n",
            "FILE, line 3: queue.core.partition is not a setting; did you mean queue.core.partitions?",
        ),
        (
            "queue:\n  kafka:\n    bootstrap-servers: a:1\n",
            "FILE, line 3: queue.kafka.bootstrap-servers is not a setting; did you mean queue.kafka.bootstrap.servers?",
        ),
        ("xyzzy: 1\n", "FILE, line 1: xyzzy is not a setting"),
        ("web_port: 1\n", "FILE, line 1: web_port is not a setting"),
        ("queue: kafka\n", "FILE, line 1: queue must hold keys below it, not a value"),
        ("- queue\n", "FILE, line 1: the file must hold keys below it, not a value"),
        ("queue:\n  ? [a]\n  : 1\n", "FILE, line 2: queue has a key that is not a name"),
        ("queue:\n  prefix: [a]\n", "FILE, line 2: queue.prefix must be a single value"),
        (
            "queue:\n  prefix:\n",
            'FILE, line 2: queue.prefix has no value; leave it out for its default, or write "" for nothing',
        ),
        (
            "queue:\n  prefix: a\n  prefix: b\n",
            "FILE, line 3: queue.prefix is set a second time; line 2 sets it too",
        ),
        (
            "queue:\n  core:\n    ota.topic: a\n    ota: {topic: b}\n",
            "FILE, line 4: queue.core.ota.topic is set a second time; line 3 sets it too",
        ),
        (
            "queue:\n  core:\n    partitions: many\n",
            "FILE, line 3: queue.core.partitions: 'many' is not a whole number",
        ),
        ("queue:\n  core:\n    partitions: 0\n", "FILE, line 3: queue.core.partitions: '0' is below 1"),
        ("queue:\n  core:\n    partitions: 1.5\n", "FILE, line 3: queue.core.partitions: '1.5' is not a whole number"),
        (
            "queue:\n  partitions.hash_function_name: md5\n",
            "FILE, line 2: queue.partitions.hash_function_name: 'md5' is not one of " + ", ".join(HASH_FUNCTIONS),
        ),
        ("queue:\n  x: {\n", "FILE, line 3: is not YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, expected: str, tmp_path: Path) -> None:
    assert problem(tmp_path, text) == expected


def test_a_topic_that_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert problem(tmp_path, "queue:\n  edge.topic: a b\n").startswith(
        "FILE, line 2: queue.edge.topic: topic 'a b' may hold only"
    )
    assert "ends in '.dlq'" in problem(tmp_path, "", SWITCHYARD_QUEUE_CORE_TOPIC="x.dlq")
    assert "prefix 'a..b' may hold only" in problem(tmp_path, "", SWITCHYARD_QUEUE_PREFIX="a..b")


def test_everything_wrong_is_reported_at_once(tmp_path: Path) -> None:
    text = "queue:\n  core.partitions: x\n  vc.partitions: 0\n  nothing: 1\n"
    message = problem(tmp_path, text, SWITCHYARD_QUEUE_EDGE_PARTITIONS="y", SWITCHYARD_QUEUE_CORE_TOPICS="z")
    assert message.split("; ")[:6] == [
        "FILE, line 2: queue.core.partitions: 'x' is not a whole number",
        "SWITCHYARD_QUEUE_EDGE_PARTITIONS: 'y' is not a whole number",
        "FILE, line 3: queue.vc.partitions: '0' is below 1",
        "FILE, line 4: queue.nothing is not a setting",
        "SWITCHYARD_QUEUE_CORE_TOPICS is not a setting",
        "did you mean SWITCHYARD_QUEUE_CORE_TOPIC?",
    ]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.yaml cannot be read \(No such file or directory\)"):
        queue_settings({FILE_VARIABLE: str(tmp_path / "missing.yaml")})
    (tmp_path / "binary.yaml").write_bytes(b"\x00\x01")
    with pytest.raises(ConfigurationError, match=r"binary\.yaml, line 1: is not YAML"):
        queue_settings({}, tmp_path / "binary.yaml")


def test_a_file_that_holds_itself_is_no_trap(tmp_path: Path) -> None:
    assert "queue.queue is not a setting" in problem(tmp_path, "queue: &all\n  queue: *all\n")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", ()),
        ("IMPORT:24", (("IMPORT", 24),)),
        (" import : 24 ; EXPORT:6 ; ", (("IMPORT", 24), ("EXPORT", 6))),
    ],
)
def test_partitions_per_type(raw: str, expected: Any) -> None:
    settings = queue_settings({"SWITCHYARD_QUEUE_TASKS_PARTITIONS_PER_TYPE": raw})
    assert settings.tasks.partitions_per_type == expected


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("IMPORT", "has an entry 'IMPORT'; write TYPE:24"),
        ("IMPORT:x", "has an entry 'IMPORT:x'; write TYPE:24"),
        ("IMPORT:0", "has an entry 'IMPORT:0'; write TYPE:24, with 1 to 1000 partitions"),
        ("IMPORT:1001", "with 1 to 1000 partitions"),
        ("a:1;A:2", "names A twice"),
        (":5", "cannot end the name of a topic"),
        ("a b:5", "cannot end the name of a topic"),
    ],
)
def test_partitions_per_type_that_make_no_sense(raw: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        queue_settings({"SWITCHYARD_QUEUE_TASKS_PARTITIONS_PER_TYPE": raw})


def test_the_names_of_hash_functions_are_those_there_are() -> None:
    assert get_args(HashName) == tuple(HASH_FUNCTIONS)


def test_options_come_from_the_section_of_the_provider_in_use() -> None:
    environ = {
        "SWITCHYARD_QUEUE_KAFKA_ACKS": "1",
        "SWITCHYARD_QUEUE_KAFKA_LINGER_MS": "7",
        "SWITCHYARD_QUEUE_KAFKA_COMPRESSION_TYPE": "zstd",
        "SWITCHYARD_QUEUE_KAFKA_RETRIES": "4",
        "SWITCHYARD_QUEUE_KAFKA_MAX_POLL_RECORDS": "5",
        "SWITCHYARD_QUEUE_KAFKA_AUTO_OFFSET_RESET": "latest",
        "SWITCHYARD_QUEUE_IN_MEMORY_BATCH_SIZE": "9",
    }
    on_kafka = queue_settings({**environ, "SWITCHYARD_QUEUE_TYPE": "kafka"})
    assert producer_options(on_kafka) == ProducerOptions(acks="1", linger_ms=7, compression="zstd", retries=4)
    assert consumer_options(on_kafka) == ConsumerOptions(max_poll_records=5, auto_offset_reset="latest")

    on_log = queue_settings(environ)
    assert producer_options(on_log) == ProducerOptions()
    assert consumer_options(on_log) == ConsumerOptions()

    in_memory = queue_settings({**environ, "SWITCHYARD_QUEUE_TYPE": "in-memory"})
    assert producer_options(in_memory) == ProducerOptions(batch_size=9)


def test_everything_that_only_kafka_has_reaches_its_options() -> None:
    keys = {
        "replication_factor": "3",
        "min.insync.replicas": "2",
        "request.timeout.ms": "5000",
        "delivery.timeout.ms": "6000",
        "max.poll.interval.ms": "7000",
        "group.protocol": "consumer",
        "client.id": "east",
        "client.rack": "east-1",
        "ssl.enabled": "true",
        "ssl.ca.location": "ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.key",
        "ssl.key.password": "of the key",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "my own",
        "properties": "debug:broker",
        "producer.properties": "compression.level:3",
        "consumer.properties": "fetch.min.bytes:100;check.crcs:true",
    }
    settings = queue_settings({VARIABLES[f"queue.kafka.{key}"]: text for key, text in keys.items()})
    assert kafka_options(settings) == KafkaOptions(
        replication_factor=3,
        min_insync_replicas=2,
        request_timeout_ms=5000,
        delivery_timeout_ms=6000,
        max_poll_interval_ms=7000,
        group_protocol="consumer",
        client_id="east",
        client_rack="east-1",
        security=KafkaSecurity(
            tls=True,
            ca="ca.pem",
            check_hostname=False,
            certificate="me.pem",
            key="me.key",
            key_password="of the key",
            sasl_mechanism="SCRAM-SHA-512",
            username="me",
            password="my own",
        ),
        properties={"debug": "broker"},
        producer_properties={"compression.level": "3"},
        consumer_properties={"fetch.min.bytes": "100", "check.crcs": "true"},
    )
    assert kafka_options(QueueSettings()) == DEFAULT_KAFKA


def test_properties_may_be_a_mapping_in_the_file(tmp_path: Path) -> None:
    text = "queue.kafka:\n  properties:\n    statistics.interval.ms: 5\n    ssl.ca.pem: 'a:b'\n"
    assert tree(tmp_path, text).kafka.properties == (("statistics.interval.ms", "5"), ("ssl.ca.pem", "a:b"))
    assert tree(tmp_path, "queue.kafka.properties: {}\n").kafka.properties == ()
    for wrong in ("{a: [1]}", "{a: {b: 1}}", "{a: 'b;c'}", "{[a]: b}"):
        expected = "FILE, line 1: queue.kafka.properties must hold names with single values, without ';'"
        assert problem(tmp_path, f"queue.kafka.properties: {wrong}\n") == expected


def test_the_examples_of_the_how_to_are_settings(tmp_path: Path) -> None:
    blocks = list(yaml_blocks((ROOT / "docs" / "howto" / "kafka.md").read_text()))
    assert len(blocks) == 6
    for block in blocks:
        password = {"SWITCHYARD_QUEUE_KAFKA_SASL_PASSWORD": "hunter2"} if "sasl" in block else {}
        assert kafka_options(tree(tmp_path, block, **password)) != DEFAULT_KAFKA


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("hunter2", "has an entry without a name and a colon; write name:value;name2:value2"),
        (":hunter2", "has an entry without a name and a colon; write name:value;name2:value2"),
        ("a:hunter2;a:2", "names a twice"),
    ],
)
def test_properties_that_make_no_sense_are_refused_without_showing_them(raw: str, reason: str, tmp_path: Path) -> None:
    message = problem(tmp_path, "", SWITCHYARD_QUEUE_KAFKA_PROPERTIES=raw)
    assert message == f"SWITCHYARD_QUEUE_KAFKA_PROPERTIES: its value {reason}"


def test_secrets_are_not_shown() -> None:
    secrets = [info.variable for info in describe(Config) if info.secret and info.key.startswith("queue.")]
    assert len(secrets) == 5
    assert "hunter2" not in repr(queue_settings(dict.fromkeys(secrets, "hunter:hunter2")))


@pytest.mark.parametrize("kind", ["gzip", "snappy"])
def test_some_compressions_are_kafkas_alone(kind: str, tmp_path: Path) -> None:
    assert tree(tmp_path, f"queue.kafka.compression.type: {kind}\n").kafka.compression_type == kind
    assert f"'{kind}' is not one of none, lz4, zstd" in problem(tmp_path, f"queue.log.compression.type: {kind}\n")


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="buffer_memory is 10"):
        producer_options(queue_settings({"SWITCHYARD_QUEUE_LOG_BUFFER_MEMORY": "10"}))
    with pytest.raises(ConfigurationError, match="buffer_memory is 10"):
        load(Config, {"SWITCHYARD_QUEUE_LOG_BUFFER_MEMORY": "10"}).check()


def test_variables_of_other_parts_are_left_alone() -> None:
    assert queue_settings({"SWITCHYARD_WEB_PORT": "80", "SWITCHYARD_QUEUE_CORE_PARTITIONS": "3"}).core.partitions == 3


def test_an_installation_has_the_tree(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text("queue:\n  type: kafka\n  kafka.bootstrap.servers: kafka:9092\n  vc.partitions: 4\n")
    queue = load(Config, {FILE_VARIABLE: str(file), "SWITCHYARD_QUEUE_KAFKA_REPLICATION_FACTOR": "3"}).queue

    assert (queue.type, queue.kafka.bootstrap_servers, queue.kafka.replication_factor) == ("kafka", "kafka:9092", 3)
    assert queue.vc.partitions == 4


def test_an_installation_cannot_keep_its_queues_in_one_process() -> None:
    with pytest.raises(ConfigurationError, match=r"^SWITCHYARD_QUEUE_TYPE: .* choose log or kafka"):
        load(Config, {"SWITCHYARD_QUEUE_TYPE": "in-memory"}).check()


def test_an_installation_does_not_forgo_acknowledgements() -> None:
    with pytest.raises(ConfigurationError, match=r"^SWITCHYARD_QUEUE_LOG_ACKS: .* choose 1 or all"):
        load(Config, {"SWITCHYARD_QUEUE_LOG_ACKS": "0"}).check()
    load(Config, {"SWITCHYARD_QUEUE_KAFKA_ACKS": "0"}).check()


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("ssl.ca.location", "ca.pem", "ca is set, which needs tls"),
        ("sasl.mechanism", "PLAIN", "sasl_mechanism is set, which needs username"),
        ("properties", "no.such:1", 'No such configuration property: "no.such"'),
        ("properties", "acks:1", "properties has 'acks', which ProducerOptions.acks (queue.kafka.acks) decides"),
        ("min.insync.replicas", "2", "min_insync_replicas is 2, with 1 replicas nothing could ever be written"),
    ],
)
def test_an_installation_on_kafka_is_told_at_its_start_what_kafka_would_refuse(
    key: str, text: str, reason: str
) -> None:
    wrong = {VARIABLES[f"queue.kafka.{key}"]: text}
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        load(Config, {**wrong, "SWITCHYARD_QUEUE_TYPE": "kafka"}).check()
    load(Config, wrong).check()


def test_an_installation_on_kafka_is_told_of_one_problem_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(Config, {"SWITCHYARD_QUEUE_TYPE": "kafka", "SWITCHYARD_QUEUE_KAFKA_BUFFER_MEMORY": "10"}).check()
    assert str(caught.value).count("buffer_memory is 10") == 1


def test_an_installation_tells_of_settings_that_it_does_not_obey(settings: Any) -> None:
    settings.SWITCHYARD = load(Config, {"SWITCHYARD_QUEUE_CORE_PARTITIONS": "4"})
    [warning] = check_queue_settings(None)
    assert "SWITCHYARD_QUEUE_CORE_PARTITIONS (queue.core.partitions) is 4" in warning.msg
    assert "Configure the queue itself in the control plane" in str(warning.hint)
    settings.SWITCHYARD = load(Config, {"SWITCHYARD_QUEUE_KAFKA_GROUP_PROTOCOL": "consumer"})
    [warning] = check_queue_settings(None)
    assert "(queue.kafka.group.protocol) is 'consumer', which has no effect on an installation's queues" in warning.msg
    assert "keeps to the classic protocol" in str(warning.hint)
    obeyed = {
        "SWITCHYARD_QUEUE_LOG_LINGER_MS": "5",
        "SWITCHYARD_QUEUE_KAFKA_MAX_POLL_INTERVAL_MS": "5",
        "SWITCHYARD_QUEUE_KAFKA_REPLICATION_FACTOR": "3",
        "SWITCHYARD_QUEUE_PACK_PROCESSING_TIMEOUT": "2000",
        "SWITCHYARD_QUEUE_RULE_ENGINE_DLQ_ENABLED": "false",
        "SWITCHYARD_QUEUE_RULE_ENGINE_REPLICATION_FACTOR": "5",
    }
    settings.SWITCHYARD = load(Config, obeyed)
    assert check_queue_settings(None) == []


def test_an_installation_refuses_topics_that_clash() -> None:
    load(Config, {"SWITCHYARD_QUEUE_EDGE_TOPIC": "tb.edge"}).check()
    with pytest.raises(ConfigurationError, match=r"'tb_core' and 'tb\.core' differ in"):
        load(Config, {"SWITCHYARD_QUEUE_EDGE_TOPIC": "tb.core"}).check()


def test_settings_of_a_tree_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        KafkaSettings().acks = "1"  # type: ignore[misc]
