"""What a tenant's people read of operations of theirs, over REST and in the console: plain words. Whoever runs the
system reads all of it."""

from typing import NamedTuple

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from queueapi.actions.actor import SYSTEM
from queueapi.actions.replays import REPLAY
from queueapi.actions.tenants import create_tenant
from queueapi.choices import OperationState, Role
from queueapi.models import Operation, Replay
from queueapi.replaying import ReplaySettings, Standing, is_reason_to_stop, why_stop
from queueapi.selectors.operation_words import waits_because
from queueapi.selectors.queue_operations import ISOLATE, RESIZE, RETURN
from tests.people import person

pytestmark = pytest.mark.django_db

RAW = "ConnectionRefusedError: broker-7.internal:9092 refused tasks@worker-3"
PLAIN = "it could not go on, and what was not sent is open again"


class World(NamedTuple):
    operation: Operation
    replay: Replay
    tenants: Client
    staff: Client


@pytest.fixture
def world() -> World:
    """A replay of a tenant's that waited, and then failed for reasons of the installation."""
    tenant = create_tenant(SYSTEM, "Greenhouse")
    over = {"state": OperationState.FAILED, "error": RAW, "finished_at": timezone.now()}
    operation = Operation.objects.create(kind=REPLAY, summary="Replay", total=5, tenant_id=tenant.pk, **over)
    for text in (waits_because("worker-3 cannot reach broker-7.internal"), "sent 3 of 5 letters", RAW):
        operation.log.create(text=text)
    replay = Replay.objects.create(operation=operation)
    clients = (Client(), Client())
    clients[0].force_login(person("eve", Role.TENANT_ADMIN, tenant))
    clients[1].force_login(person("ada", Role.OPERATOR))
    return World(operation, replay, *clients)


def errors_over_rest(world: World, client: Client) -> list[str]:
    one = [f"/api/v1/operations/{world.operation.pk}", f"/api/v1/replays/{world.replay.pk}"]
    lists = ["/api/v1/operations", "/api/v1/replays"]
    told = [client.get(path).json()["error"] for path in one]
    return told + [client.get(path).json()["results"][0]["error"] for path in lists]


def test_over_rest_errors_of_the_installation_are_told_in_plain_words(world) -> None:
    for told in errors_over_rest(world, world.tenants):
        assert told.startswith(PLAIN)
    assert errors_over_rest(world, world.staff) == [RAW] * 4


def test_in_the_console_neither_the_error_nor_the_log_names_anything_of_the_installation(world) -> None:
    address = reverse("operation", args=[world.operation.pk])
    page = world.tenants.get(address).content.decode()
    for text in ("broker-7", "worker-3", "ConnectionRefusedError"):
        assert text not in page
    # In the banner, and as the log's last line.
    assert page.count(PLAIN) == 2
    assert "waits and will try again<" in page
    assert "sent 3 of 5 letters" in page
    staff = world.staff.get(address).content.decode()
    assert staff.count(RAW) == 2
    assert "worker-3 cannot reach broker-7.internal" in staff


def test_that_too_many_letters_failed_again_is_told_as_it_is(world) -> None:
    reason = why_stop(ReplaySettings(), Standing(total=40, sent=20, succeeded=5, failed=15, skipped=0))
    assert is_reason_to_stop(reason)
    Operation.objects.update(error=reason)
    world.operation.log.create(text=reason)
    assert errors_over_rest(world, world.tenants) == [reason] * 4
    assert world.tenants.get(reverse("operation", args=[world.operation.pk])).content.decode().count(reason) == 2


def test_one_that_has_not_failed_has_no_error(world) -> None:
    Operation.objects.update(error="", state=OperationState.SUCCEEDED)
    assert errors_over_rest(world, world.tenants) == [""] * 4


@pytest.mark.parametrize("kind", [ISOLATE, RETURN, RESIZE])
def test_what_is_done_to_queues_is_told_without_the_systems_services(world, kind) -> None:
    Operation.objects.filter(pk=world.operation.pk).update(kind=kind)
    told = world.tenants.get(f"/api/v1/operations/{world.operation.pk}").json()
    assert told["error"] == "it could not go on; administrators see why, and can have it tried again"
    page = reverse("operation", args=[world.operation.pk])
    assert b"broker-7" not in world.tenants.get(page).content
    assert b"broker-7" in world.staff.get(page).content


def test_over_rest_what_came_of_it_is_told_but_not_what_is_the_systems_affair(world) -> None:
    path = f"/api/v1/operations/{world.operation.pk}"
    result = {"message": "sent 5 of 5 letters"}
    Operation.objects.update(state=OperationState.SUCCEEDED, error="", result=result)
    for kind, told in ((REPLAY, result), (RESIZE, {})):
        Operation.objects.update(kind=kind)
        assert world.staff.get(path).json()["result"] == result
        assert world.tenants.get(path).json()["result"] == told
