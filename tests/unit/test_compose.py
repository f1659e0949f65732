"""`docker-compose.yml` and the `Dockerfile`, as far as they can be checked without running them."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from queueapi.celery_config import CONSUMERS_QUEUE, SPARK_QUEUE, TASKS_QUEUE
from queueapi.config import Config
from queuecore.config import describe
from queuecore.testing.services.kafka_jars import kafka_version
from scripts.healthcheck import CHECKS

ROOT = Path(__file__).parents[2]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()

SETTINGS = {name for info in describe(Config) for name in (info.variable, info.alias) if name}
SECRETS = {info.variable for info in describe(Config) if info.secret} | {"POSTGRES_PASSWORD"}
VARIABLE = re.compile(r"\b(?:SWITCHYARD_[A-Z0-9_]+|SPARK_MASTER)\b")
PINNED = re.compile(r"[a-z0-9./-]+:\d+(\.\d+)*(-[a-z0-9.-]+)?")

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


def is_one_shot(service: dict[str, Any]) -> bool:
    return service.get("restart") == "no"


def has_health_check(service: dict[str, Any]) -> bool:
    check = service.get("healthcheck", {})
    return bool(check.get("test")) and not check.get("disable", False)


def instructions(name: str) -> list[list[str]]:
    """The words behind each such instruction of the Dockerfile, continued lines joined."""
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    return [line.split()[1:] for line in lines if line.startswith(f"{name} ")]


def has_compose() -> bool:
    try:
        return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def validate(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "compose", "--file", "docker-compose.yml", "--env-file", os.devnull, "config", "--quiet"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_file_asks_for_its_secrets() -> None:
    """By compose itself where it is installed; else every secret is marked as required where it is used."""
    secrets = {"SWITCHYARD_SECRET_KEY": "a", "POSTGRES_PASSWORD": "b"}
    if not has_compose():
        text = (ROOT / "docker-compose.yml").read_text()
        uses = re.findall(r"\$\{(\w+)([^}]*)\}", text)
        assert {name for name, _ in uses if name in secrets} == secrets.keys()
        assert all(rest.startswith(":?") for name, rest in uses if name in secrets)
        return
    complete = validate(secrets)
    assert complete.returncode == 0, complete.stderr
    for missing in secrets:
        refused = validate({name: value for name, value in secrets.items() if name != missing})
        assert refused.returncode != 0
        assert missing in refused.stderr


def test_every_part_of_an_installation_has_a_service() -> None:
    assert SERVICES.keys() == {
        *("kafka", "postgres", "redis", "spark-master", "spark-worker"),
        *("bootstrap", "web", "consumer", "tasks", "spark", "beat"),
    }


@each_service
def test_a_service_has_a_health_check_or_is_a_one_shot(service: dict[str, Any]) -> None:
    assert has_health_check(service) != is_one_shot(service)


@each_service
def test_dependencies_exist_and_can_be_met(service: dict[str, Any]) -> None:
    for name, dependency in service.get("depends_on", {}).items():
        assert name in SERVICES
        if is_one_shot(SERVICES[name]):
            assert dependency["condition"] == "service_completed_successfully"
        else:
            assert dependency["condition"] == "service_healthy"
            assert has_health_check(SERVICES[name])


def test_dependencies_have_no_circle() -> None:
    waiting = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    while waiting:
        startable = {name for name, wanted in waiting.items() if not wanted & waiting.keys()}
        assert startable, f"these wait for each other: {', '.join(waiting)}"
        waiting = {name: wanted for name, wanted in waiting.items() if name not in startable}


@each_service
def test_volumes_and_networks_are_declared(service: dict[str, Any]) -> None:
    assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= COMPOSE["volumes"].keys()
    assert set(service.get("networks", [])) <= COMPOSE["networks"].keys()


def test_every_declared_volume_and_network_is_used() -> None:
    volumes = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    networks = {network for service in SERVICES.values() for network in service.get("networks", [])}
    assert (volumes, networks) == (COMPOSE["volumes"].keys(), COMPOSE["networks"].keys())


@each_service
def test_images_are_pinned_to_a_version(service: dict[str, Any]) -> None:
    assert PINNED.fullmatch(service["image"]), f"{service['image']} is not pinned to a version"


@each_service
def test_ports_are_published_on_loopback_only(service: dict[str, Any]) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_only_the_console_is_published() -> None:
    assert [name for name, service in SERVICES.items() if service.get("ports")] == ["web"]


@pytest.mark.parametrize("text", [COMPOSE_TEXT, DOCKERFILE], ids=["docker-compose.yml", "Dockerfile"])
def test_every_variable_is_a_setting(text: str) -> None:
    used = set(VARIABLE.findall(text))
    assert used
    assert used <= SETTINGS


def test_no_secret_has_a_default() -> None:
    """A secret comes from outside, and its absence is an error; an address may hold one that does."""
    substituted = re.findall(r"\$\{(\w+)(:?[-?+])?", COMPOSE_TEXT)
    assert {name for name, operator in substituted if name in SECRETS and operator != ":?"} == set()
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if name in SECRETS and not name.endswith("_URL"):
                assert value.startswith(f"${{{name}:?"), f"{name} must come from outside"
            elif name in SECRETS and "@" in value:
                assert re.search(r":\$\{\w+:\?[^}]*\}@", value), f"{name} holds a password of its own"


def test_each_celery_queue_has_a_worker() -> None:
    commands = [service["command"] for service in SERVICES.values() if "worker" in service.get("command", [])]
    assert sorted(command[command.index("--queues") + 1] for command in commands) == sorted(
        [CONSUMERS_QUEUE, SPARK_QUEUE, TASKS_QUEUE]
    )


@each_service
def test_our_health_checks_exist(service: dict[str, Any]) -> None:
    test = service.get("healthcheck", {}).get("test", [])
    if "scripts.healthcheck" in test:
        assert test[-1] in CHECKS


def test_kafka_is_the_version_the_tests_run_on() -> None:
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{kafka_version()}"


def test_base_images_are_pinned_to_a_version() -> None:
    images = [words[0] for words in instructions("FROM")]
    assert images
    assert [image for image in images if not PINNED.fullmatch(image)] == []


def test_everything_that_is_copied_exists_and_reaches_the_build() -> None:
    allowed = {line.lstrip("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [words for words in instructions("COPY") if not words[0].startswith("--from")]
    assert copied
    for *sources, _destination in copied:
        for source in sources:
            assert (ROOT / source).exists(), f"COPY {source}: not in the tree"
            assert source.rstrip("/") in allowed, f"COPY {source}: left out by .dockerignore"


def test_the_image_runs_without_root_and_installs_by_hash() -> None:
    stage = DOCKERFILE.rpartition("\nFROM ")[2]
    user = re.search(r"(?m)^USER (\S+)$", stage)
    assert user is not None
    assert user[1] not in {"root", "0"}
    assert stage.index("\nUSER ") < stage.index("\nCMD ")
    assert "\nHEALTHCHECK " in stage
    assert "pip install --require-hashes -r requirements.lock" in DOCKERFILE
