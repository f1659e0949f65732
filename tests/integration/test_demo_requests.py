"""The demo's transport asks the core who its devices are, and knows what became of it, whatever happens to the core."""

import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from queueapi import runtime
from queueapi.config import config
from queueapi.supervisor.child import die_with_parent
from queuecore.errors import RequestFailed, UndecodableMessage
from queuecore.metrics import METRICS_PARTITIONS, METRICS_TOPIC
from queuecore.proto.events_pb2 import Event
from queuecore.requests import LAG_BOUNDS_MS, Request, RequestTemplate, ResponseTemplate
from queuecore.testing.clock import ManualClock
from queuecore.testing.services.ports import free_port
from queuecore.testing.waiting import DEADLINE_S, wait_until
from queuecore.topics import ProviderPartition
from tests.system import ROOT
from workers.demo.asking import Answers, Asking, requester
from workers.demo.handlers import SLOW_S
from workers.demo.questions import SLOW, SLOW_EVERY, UNREGISTERED, UNREGISTERED_EVERY, Question, questions
from workers.demo.registry import UNKNOWN_DEVICE, Registry, hang_at_times, responder
from workers.demo.seed import Sample, seed
from workers.demo.traffic import SENSORS, sensor_id
from workers.demo.transport import REPORT_EVERY_S, SERVICE_ID
from workers.demo.watching import watched

FAST: dict[str, Any] = {"per_s": 200, "timeout_ms": 60_000}


@pytest.fixture
def sample(installation) -> Sample:
    return seed()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def registry(clock: ManualClock) -> Registry:
    return Registry(clock)


@pytest.fixture
def core(sample: Sample, registry: Registry) -> Iterator[ResponseTemplate]:
    with responder(runtime.provider(), config().queue, registry) as answering:
        yield answering


@pytest.fixture
def template(core: ResponseTemplate) -> Iterator[RequestTemplate]:
    with requester(runtime.provider(), config().queue) as template:
        yield template


@contextmanager
def asking(about: Iterator[Question], **options: Any) -> Iterator[Asking]:
    asking = Asking(runtime.provider(), config().queue, about, **FAST | options)
    asking.start()
    try:
        yield asking
    finally:
        asking.stop()


def strangers() -> Iterator[Question]:
    return (Question(uuid4(), UNREGISTERED) for _ in itertools.count())


# What is asked


def test_the_same_seed_gives_the_same_questions(sample: Sample) -> None:
    first, again = (list(islice(questions(sample), 500)) for _ in range(2))
    assert first == again
    assert first != list(islice(questions(sample, seed=8), 500))


def test_some_questions_ask_for_trouble(sample: Sample) -> None:
    asked = list(islice(questions(sample), UNREGISTERED_EVERY * SLOW_EVERY))
    assert sum(one.sensor == UNREGISTERED for one in asked) == SLOW_EVERY
    assert sum(one.fault == SLOW for one in asked) == UNREGISTERED_EVERY
    registered = {one.device for one in asked if one.sensor != UNREGISTERED}
    tenants = (*sample.tenants, sample.noisy)
    assert registered <= {sensor_id(tenant, number) for tenant in tenants for number in range(SENSORS)}


def test_a_question_is_read_as_it_was_sent() -> None:
    question = Question(uuid4(), 3, SLOW)
    assert Question.read(question.message().data) == question


@pytest.mark.parametrize("data", [b"\xff", b"[]", b"{}", b'{"device": 7, "sensor": 7}', b"[" * 100_000])
def test_what_is_no_question_is_answered_so(template: RequestTemplate, data: bytes) -> None:
    with pytest.raises(UndecodableMessage, match="send JSON with `device` and `sensor`"):
        Question.read(data)
    with pytest.raises(RequestFailed) as caught:
        template.send(data).result(DEADLINE_S)
    assert caught.value.error_code == UndecodableMessage.code


# What is answered


def test_the_transport_learns_who_its_devices_are(sample: Sample, core: ResponseTemplate) -> None:
    with asking(questions(sample)) as transport:
        wait_until(lambda: len(transport.answers.devices) > SENSORS)
    sensors = {str(one.device): f"Sensor {one.sensor}" for one in islice(questions(sample), 10_000)}
    assert transport.answers.devices.items() <= sensors.items()


def test_a_device_that_nobody_registered_is_a_typed_error(core: ResponseTemplate) -> None:
    with asking(strangers()) as transport:
        wait_until(lambda: transport.answers.errors[UNKNOWN_DEVICE] > 3)
    assert transport.answers.devices == {}
    assert transport.template.counts.failed > 3


def test_a_slow_answer_takes_its_time(template: RequestTemplate, clock: ManualClock) -> None:
    template.send(Question(uuid4(), 1, SLOW).message()).result(DEADLINE_S)
    assert clock.monotonic() == SLOW_S


def test_questions_pile_up_while_the_registry_hangs(sample: Sample, core: ResponseTemplate, registry: Registry) -> None:
    registry.hang()
    with asking(questions(sample)) as transport:
        wait_until(lambda: transport.template.counts.pending > 50)
        assert transport.answers.devices == {}
        registry.recover()
        wait_until(lambda: len(transport.answers.devices) > SENSORS)


def test_what_waits_too_long_for_the_registry_times_out(
    sample: Sample, core: ResponseTemplate, registry: Registry
) -> None:
    registry.hang()
    with asking(questions(sample), timeout_ms=500) as transport:
        wait_until(lambda: transport.answers.errors["request_timeout"] > core.options.concurrency)
        registry.recover()
        wait_until(lambda: transport.answers.devices)
    wait_until(lambda: core.counts.timed_out > 0)


def test_the_registry_hangs_at_times(registry: Registry) -> None:
    stopping = threading.Event()
    hanging = threading.Thread(target=hang_at_times, args=(registry, stopping, 0.001, DEADLINE_S))
    hanging.start()
    wait_until(lambda: not registry.is_up)
    stopping.set()
    hanging.join(DEADLINE_S)
    assert registry.is_up


# What is said


def test_answers_are_told_in_short(template: RequestTemplate) -> None:
    answers = Answers()
    for sensor in (1, 2, UNREGISTERED):
        future = template.send(Question(uuid4(), sensor).message())
        future.exception(DEADLINE_S)
        answers.note(future)
    lags = [0] * (len(LAG_BOUNDS_MS) + 1)
    lags[LAG_BOUNDS_MS.index(5)] = 2
    lags[LAG_BOUNDS_MS.index(500)] = 1
    assert answers.report(lags) == (
        "3 answers from the core, half within 5 ms, 99 % within 500 ms; failures: unknown_device: 1; devices known: 2"
    )
    assert answers.report(lags) == "0 answers from the core; failures: none; devices known: 2"


def test_a_line_is_logged_every_half_minute(
    sample: Sample, core: ResponseTemplate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    with asking(questions(sample), clock=clock) as transport:
        for number in (1, 2):
            wait_until(lambda: transport.answers.devices)
            clock.advance(REPORT_EVERY_S)
            wait_until(lambda number=number: caplog.text.count("in the last 30 s: ") == number)
    assert "answers from the core, half within" in caplog.text


def test_an_answer_that_says_nothing_is_a_failure(sample: Sample) -> None:
    class Mute(Registry):
        def answer(self, request: Request) -> bytes:
            return b'{"name": "nobody"}'

    with responder(runtime.provider(), config().queue, Mute()), asking(questions(sample)) as transport:
        wait_until(lambda: transport.answers.errors[UndecodableMessage.code] > 3)


# What is seen


def request_samples() -> list[Event]:
    reader = runtime.provider().reader()
    places = [ProviderPartition(METRICS_TOPIC, number) for number in range(METRICS_PARTITIONS)]
    events = [Event.FromString(record.data) for place in places for record in reader.read(place, 0, 100)]
    return [event for event in events if event.HasField("request_sample")]


def test_samples_of_the_requests_go_to_the_pipeline(template: RequestTemplate) -> None:
    with watched(runtime.provider(), template, f"127.0.0.1:{free_port()}"):
        template.send(Question(uuid4(), 1).message()).result(DEADLINE_S)
        template.send(Question(uuid4(), UNREGISTERED).message()).exception(DEADLINE_S)
        template.stop()
    events = request_samples()
    assert {event.service_id for event in events} == {SERVICE_ID}
    assert sum(event.request_sample.answered for event in events) == 1
    assert sum(event.request_sample.failed for event in events) == 1


def test_prometheus_is_shown_the_requests(template: RequestTemplate) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with watched(runtime.provider(), template, listen):
        template.send(Question(uuid4(), 1).message()).result(DEADLINE_S)
        with urllib.request.urlopen(f"http://{listen}/metrics", timeout=30) as answer:
            shown = str(answer.read(), "utf-8")
    labels = f'{{request_topic="tb_transport.api.requests",service_id="{SERVICE_ID}"}}'
    assert f"response_lag_seconds_count{labels} 1.0" in shown


def test_a_port_that_is_taken_stops_nothing(template: RequestTemplate, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with watched(runtime.provider(), template, listen):
            template.send(Question(uuid4(), 1).message()).result(DEADLINE_S)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"SWITCHYARD_METRICS_LISTEN: cannot listen on {listen} (Address already in use)" in warning
    assert request_samples()


# What it survives


def test_the_transport_goes_on_when_it_is_started_again(sample: Sample, core: ResponseTemplate) -> None:
    for _ in range(2):
        with asking(questions(sample)) as transport:
            wait_until(lambda asked=transport: asked.answers.devices)


def test_another_transport_with_the_same_id_has_the_answers(sample: Sample, core: ResponseTemplate) -> None:
    with asking(questions(sample)) as first:
        wait_until(lambda: first.answers.devices)
        with asking(questions(sample)) as second:
            wait_until(lambda: second.answers.devices)
            wait_until(lambda: first.template.error is not None and not first._thread.is_alive())


@contextmanager
def core_process(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """As `manage.py up` starts it; killed in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "workers.demo.core_api"],
        cwd=ROOT,
        env={**os.environ, "SWITCHYARD_DATA_DIR": str(folder)},
        preexec_fn=die_with_parent(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(DEADLINE_S)


def test_a_core_that_is_killed_is_missed_until_there_is_another(installation, sample: Sample) -> None:
    with asking(questions(sample), timeout_ms=1_000) as transport:
        with core_process(installation.folder):
            wait_until(lambda: transport.answers.devices)
        missed = transport.template.counts.timed_out
        wait_until(lambda: transport.template.counts.timed_out > missed)
        answered = transport.template.counts.answered
        with core_process(installation.folder) as process:
            wait_until(lambda: transport.template.counts.answered > answered)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
