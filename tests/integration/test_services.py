"""The services that tests and `make services` run: found, started, used, stopped, restarted, missing."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import redis
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from queuecore.testing.services import (
    SERVICES,
    KafkaService,
    PostgresService,
    RedisService,
    Service,
    ServiceFailed,
    ServiceMissing,
    kafka_jars,
    ports,
    postgres,
)
from tests.services import require_or_skip, running

DEADLINE_S = 60.0


def remember_in_kafka(service: KafkaService, word: str) -> None:
    admin = AdminClient({"bootstrap.servers": service.bootstrap_servers})
    admin.create_topics([NewTopic("words", 1, 1)])["words"].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": service.bootstrap_servers})
    producer.produce("words", word.encode())
    assert producer.flush(DEADLINE_S) == 0


def recall_from_kafka(service: KafkaService) -> str:
    group = {"group.id": f"reader-{uuid.uuid4()}", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": service.bootstrap_servers, **group})
    consumer.subscribe(["words"])
    try:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        return message.value().decode()
    finally:
        consumer.close()


def remember_in_postgres(service: PostgresService, word: str) -> None:
    with psycopg.connect(service.url) as connection:
        connection.execute("create table words (word text)")
        connection.execute("insert into words values (%s)", [word])


def recall_from_postgres(service: PostgresService) -> str:
    with psycopg.connect(service.url) as connection:
        row = connection.execute("select word from words").fetchone()
    assert row is not None
    return row[0]


def remember_in_redis(service: RedisService, word: str) -> None:
    with redis.Redis.from_url(service.url) as client:
        client.set("word", word)


def recall_from_redis(service: RedisService) -> str:
    with redis.Redis.from_url(service.url, decode_responses=True) as client:
        return client.get("word")


MEMORY = {
    "kafka": (remember_in_kafka, recall_from_kafka),
    "postgres": (remember_in_postgres, recall_from_postgres),
    "redis": (remember_in_redis, recall_from_redis),
}


@pytest.fixture(params=list(SERVICES))
def kept_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """Each service in turn, as `make services` runs it: started, with data that lasts."""
    yield from running(SERVICES[request.param](tmp_path / request.param))


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any of the programs and with an empty cache; the directory is its PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("SWITCHYARD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(postgres, "SERVER_DIRECTORIES", ())
    return tmp_path


def install(directory: Path, name: str, script: str) -> None:
    """Put a program there."""
    program = directory / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_kafka_lists_topics_and_passes_a_message_on(kafka_service: KafkaService) -> None:
    remember_in_kafka(kafka_service, "points")
    topics = AdminClient({"bootstrap.servers": kafka_service.bootstrap_servers}).list_topics(timeout=DEADLINE_S)
    assert "words" in topics.topics
    assert recall_from_kafka(kafka_service) == "points"


def test_postgres_answers_a_query(postgres_service: PostgresService) -> None:
    with psycopg.connect(postgres_service.url) as connection:
        assert connection.execute("select 1, current_database()").fetchone() == (1, "switchyard")


def test_postgres_wants_its_password(postgres_service: PostgresService) -> None:
    wrong = postgres_service.url.replace("switchyard:", "switchyard:wrong-", 1)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


def test_redis_answers_a_ping(redis_service: RedisService) -> None:
    with redis.Redis.from_url(redis_service.url) as client:
        assert client.ping()


def test_a_restart_keeps_data_and_address(kept_service: Service) -> None:
    remember, recall = MEMORY[kept_service.name]
    remember(kept_service, "signal box")
    before = kept_service.environment()
    kept_service.stop()
    assert ports.is_free(kept_service.port)
    assert kept_service.pid is None
    kept_service.start()
    assert kept_service.environment() == before
    assert recall(kept_service) == "signal box"


def test_a_killed_server_comes_back_with_its_data_and_address(kept_service: Service) -> None:
    remember, recall = MEMORY[kept_service.name]
    remember(kept_service, "signal box")
    before = kept_service.environment()
    kept_service.kill()
    assert ports.is_free(kept_service.port)
    assert (kept_service.pid, kept_service.exit_code()) == (None, None)
    kept_service.start()
    assert kept_service.environment() == before
    assert recall(kept_service) == "signal box"


def test_a_directory_serves_one_server_at_a_time(redis_service: RedisService) -> None:
    with pytest.raises(ServiceFailed, match=f"in use .*process {os.getpid()}"):
        RedisService(redis_service.data_dir).start()


def test_traces_of_killed_runs_do_no_harm(tmp_path: Path) -> None:
    service = PostgresService(tmp_path / "pg", ephemeral=True)
    for started in running(service):
        cluster = started.home / "cluster"
        started.stop()
        (started.home / "cluster.new").mkdir()
        # The killed server's process id has gone to another process of the same user.
        user = started.account.uid if started.account else None
        with subprocess.Popen(["sleep", "600"], user=user) as other:
            (cluster / "postmaster.pid").write_text(f"{other.pid}\n{cluster}\n")
            try:
                started.start()
            finally:
                other.kill()
        assert started.exit_code() is None


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    for service in running(RedisService(tmp_path / "redis")):
        service.stop()
        (service.data_dir / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
        with pytest.raises(ServiceFailed, match=r"redis ended with exit code 1; the end of .*\n(.*\n)*.*manifest"):
            service.start()
        assert ports.is_free(service.port)


@pytest.mark.parametrize(
    ("name", "package"),
    [("kafka", "openjdk-17-jre-headless"), ("postgres", "package postgresql"), ("redis", "package redis-server")],
)
def test_a_missing_program_is_named_with_its_package(nothing_installed: Path, name: str, package: str) -> None:
    service = SERVICES[name](nothing_installed / "data")
    reason = service.missing()
    assert reason is not None
    assert package in reason
    assert "\n" not in reason
    with pytest.raises(ServiceMissing, match=package):
        service.start()


@pytest.mark.parametrize(
    ("version", "complaint"),
    [("1.8.0_392", "Java 8 .* too old"), ("11.0.2", "Java 11 .* too old"), ("21.0.1", "package maven")],
)
def test_kafka_wants_a_recent_java_and_then_maven(nothing_installed: Path, version: str, complaint: str) -> None:
    install(nothing_installed, "java", f"echo 'openjdk version \"{version}\"' >&2")
    with pytest.raises(ServiceMissing, match=complaint):
        KafkaService(nothing_installed / "data").start()


def test_a_failed_fetch_leaves_no_cache(nothing_installed: Path) -> None:
    install(nothing_installed, "mvn", "echo the repository is down; exit 1")
    with pytest.raises(ServiceMissing, match="the repository is down"):
        kafka_jars.fetch_jars()
    assert not kafka_jars.jar_directory().exists()


def test_a_fetch_happens_once_however_many_ask(nothing_installed: Path) -> None:
    calls = nothing_installed / "calls"
    install(nothing_installed, "mvn", f"echo call >> {calls}; /bin/sleep 0.3")
    with ThreadPoolExecutor(4) as pool:
        fetched = {future.result() for future in [pool.submit(kafka_jars.fetch_jars) for _ in range(4)]}
    assert fetched == {kafka_jars.jar_directory()}
    assert calls.read_text() == "call\n"


def test_a_fetch_clears_what_a_killed_one_left(nothing_installed: Path) -> None:
    install(nothing_installed, "mvn", "")
    leftover = kafka_jars.cache_directory() / f"{kafka_jars.jar_directory().name}.part-killed"
    leftover.mkdir(parents=True)
    kafka_jars.fetch_jars()
    assert [path.name for path in leftover.parent.glob("*.part-*")] == []


def test_what_is_missing_skips_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no redis"):
        require_or_skip("no redis")


def test_what_is_missing_fails_a_test_in_ci(monkeypatch: pytest.MonkeyPatch, nothing_installed: Path) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="redis-server is not installed"):
        next(running(RedisService(nothing_installed / "data")))


def test_require_is_silent_about_what_is_here_and_explains_what_is_not(nothing_installed: Path) -> None:
    for tool in ("sed", "cat", "id"):
        (nothing_installed / tool).symlink_to(f"/bin/{tool}")
    install(nothing_installed, "mvn", "")
    script = Path(__file__).parents[2] / "scripts" / "require"

    def require(*arguments: str) -> tuple[int, str]:
        command = ["/bin/sh", str(script), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr

    assert require("maven") == (0, "")
    code, text = require("maven", "redis")
    assert code == 1
    assert "apt-get install --no-install-recommends redis-server" in text
    assert require("--optional", "redis") == (0, text)
    assert require("rediss")[0] == 2
