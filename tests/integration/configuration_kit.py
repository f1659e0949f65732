"""An installation with something of everything that there is in a configuration document, and the document of it."""

from typing import Any

import pytest
from django.db import transaction

from queueapi.actions.actor import SYSTEM
from queueapi.actions.alert_channels import create_channel
from queueapi.actions.alert_rules import change_rule, create_rule, restore_default_rules
from queueapi.actions.configuration import import_configuration, plan_configuration
from queueapi.actions.message_types import Description, create_message_type
from queueapi.actions.queues import create_queue
from queueapi.actions.tenant_profiles import create_profile, restore_default_profile
from queueapi.actions.tenant_states import suspend_tenant
from queueapi.actions.tenants import create_tenant
from queueapi.configuration.yaml_reading import read_yaml
from queueapi.configuration.yaml_writing import write_yaml
from queueapi.errors import InvalidInput
from queueapi.models import AlertChannel, AlertRule, MessageType, Queue, Tenant, TenantProfile
from queueapi.selectors.configuration import configuration
from queuecore.topics import SYSTEM_TENANT
from tests.rest_kit import SOURCE

HOOK = {"url": "https://hooks.example.org/orders", "secret": "s3cret-enough-for-a-signature-0123"}


def furnish() -> None:
    """One thing of each kind, with what is not the default."""
    gold = create_profile(SYSTEM, name="gold", submit_strategies=["BATCH", "BURST"], messages_per_s=100, label="gold")
    shop = create_tenant(SYSTEM, "Foundry", profile=gold, bytes_per_s=1000, description="Größe: 7 # no comment")
    suspend_tenant(SYSTEM, shop, "invoice 4711 is unpaid")
    create_queue(SYSTEM, shop, name="Orders", topic="orders", handler="log", partitions=2, failure_percentage=2.5)
    system = Tenant.objects.get(id=SYSTEM_TENANT)
    # Before what it forwards to, by name.
    create_queue(SYSTEM, system, name="Zulu", topic="zulu", handler="log")
    create_queue(SYSTEM, system, name="Alpha", topic="alpha", handler="forward", handler_options={"queue": "Zulu"})
    description = Description.of({"order.proto": SOURCE})
    topics = [f"orders.isolated.{shop.id}"]
    create_message_type(SYSTEM, name="order", message="shop.Order", description=description, topics=topics)
    only_described = Description(description.descriptors)
    create_message_type(SYSTEM, name="Bill", message="shop.Order", description=only_described)
    furnish_alerts(shop)


def furnish_alerts(shop: Tenant) -> None:
    mail = create_channel(SYSTEM, name="on call", kind="email", options={"recipients": ["ada@example.org"]})
    boss = create_channel(SYSTEM, name="Boss", kind="email", options={"recipients": ["eve@example.org"]}, enabled=False)
    told = {"channels": [mail], "escalate_after_s": 600, "escalation_channels": [boss, mail]}
    orders = Queue.objects.get(name="Orders")
    create_rule(SYSTEM, name="Orders wait", metric="lag_seconds", threshold=60.5, queue=orders, **told)
    create_rule(SYSTEM, name="foundry fails", metric="error_rate", threshold=50, tenant=shop, enabled=False)
    create_rule(SYSTEM, name="Asks", metric="response_lag", threshold=10, request_topic="tb_transport.requests")
    change_rule(SYSTEM, AlertRule.objects.get(name="The figures are old"), name="Old figures", channels=[mail])


def exported() -> dict[str, Any]:
    """As it is read from the text that was written."""
    document: dict[str, Any] = read_yaml(write_yaml(configuration()), 64)
    return document


def entry(document: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in document[section] if one["name"] == name)
    return found


def empty_database() -> None:
    """As a new installation is, whose provider has kept its topics."""
    with transaction.atomic():
        AlertRule.objects.all().delete()
        AlertChannel.objects.all().delete()
        MessageType.objects.all().delete()
        Queue.objects.all().delete()
        Tenant.objects.all().delete()
        TenantProfile.objects.all().delete()
        restore_default_profile()
        restore_default_rules()


def problems_of(document: Any) -> dict[str, list[str]]:
    """Of an import, which a plan of it has as well."""
    with pytest.raises(InvalidInput) as refused:
        import_configuration(SYSTEM, document)
    found: dict[str, list[str]] = refused.value.fields["fields"]
    assert planned_problems(document) == [(place, why) for place, reasons in found.items() for why in reasons]
    return found


def planned_problems(document: Any) -> list[tuple[str, str]]:
    """Whether the document makes no sense, or something stands in its way."""
    try:
        return [(problem.place, problem.why) for problem in plan_configuration(SYSTEM, document).problems]
    except InvalidInput as error:
        return [(place, why) for place, reasons in error.fields["fields"].items() for why in reasons]
