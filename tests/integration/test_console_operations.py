"""Operations in the console: held up and let go on."""

import pytest
from django.urls import reverse

from queueapi.actions.actor import SYSTEM
from queueapi.actions.operations import finish_operation, start_operation
from queueapi.choices import OperationState
from queueapi.models import Operation

pytestmark = pytest.mark.usefixtures("installation")


@pytest.fixture
def operation() -> Operation:
    return start_operation(SYSTEM, "count", "Count", {}, 3)


def test_an_operation_is_paused_and_resumed(admin_client, operation) -> None:
    page = admin_client.post(reverse("pause_operation", args=[operation.pk]), follow=True).content.decode()
    operation.refresh_from_db()
    assert operation.is_paused
    assert "Paused" in page
    assert reverse("resume_operation", args=[operation.pk]) in page
    page = admin_client.post(reverse("resume_operation", args=[operation.pk]), follow=True).content.decode()
    operation.refresh_from_db()
    assert not operation.is_paused
    assert reverse("pause_operation", args=[operation.pk]) in page


@pytest.mark.parametrize(("name", "told"), [("pause_operation", "Not paused"), ("resume_operation", "Not resumed")])
def test_what_is_over_is_left_alone(admin_client, operation, name, told) -> None:
    assert finish_operation(operation, OperationState.SUCCEEDED)
    page = admin_client.post(reverse(name, args=[operation.pk]), follow=True).content.decode()
    assert f"{told}: this operation has already succeeded" in page
    assert reverse("pause_operation", args=[operation.pk]) not in page


@pytest.mark.parametrize("name", ["pause_operation", "resume_operation"])
def test_a_look_changes_nothing(admin_client, client, operation, name) -> None:
    url = reverse(name, args=[operation.pk])
    assert admin_client.get(url).status_code == 405
    assert client.post(url).status_code == 302
    operation.refresh_from_db()
    assert not operation.is_paused
