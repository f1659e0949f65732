import uuid
from typing import Any

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models

_DEFAULT_PROFILE = uuid.UUID("13814000-1dd2-11b2-8080-80808080d0d0")
_LIMITS = ("max_queues", "max_partitions_per_queue", "min_retention_ms", "max_retention_ms")
_QUOTAS = ("messages_per_s", "bytes_per_s", "burst_s", "partitions", "stored_bytes")


def _between(least: int, most: int) -> list[Any]:
    return [django.core.validators.MinValueValidator(least), django.core.validators.MaxValueValidator(most)]


def _limit() -> Any:
    return models.PositiveBigIntegerField(blank=True, null=True, validators=_between(1, 2**53))


def _quota(name: str, **burst: Any) -> Any:
    return models.PositiveIntegerField(validators=_between(1, 3600), **burst) if name == "burst_s" else _limit()


def _positive(model: str, name: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=models.Q((f"{name}__isnull", True), (f"{name}__gte", 1), _connector="OR"),
        name=f"{model}_{name}_positive",
        violation_error_message=f"{name}: use 1 or more, or leave it out",
    )


def _name_unique(model: str, what: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(
        django.db.models.functions.text.Lower("name"),
        name=f"{model}_name_unique",
        violation_error_message=f"name: another {what} is called so, whatever the case; choose another name",
    )


def _make_default(apps: Any, _editor: Any) -> None:
    apps.get_model("queueapi", "TenantProfile").objects.create(id=_DEFAULT_PROFILE, name="default")


class Migration(migrations.Migration):
    """Tenants have profiles, quotas of their own, and a state. Those that are there get the default profile."""

    dependencies = [
        ("queueapi", "0011_access"),
    ]

    operations = [
        migrations.CreateModel(
            name="TenantProfile",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("description", models.CharField(blank=True, default="", max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                *((name, _limit()) for name in _LIMITS),
                ("submit_strategies", models.JSONField(blank=True, default=list)),
                ("processing_strategies", models.JSONField(blank=True, default=list)),
                ("approves_isolation", models.BooleanField(default=False)),
                ("label", models.CharField(blank=True, default="", max_length=100)),
                *((name, _quota(name, default=5)) for name in _QUOTAS),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    _name_unique("tenant_profile", "profile"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("min_retention_ms__isnull", True),
                            ("max_retention_ms__isnull", True),
                            ("max_retention_ms__gte", models.F("min_retention_ms")),
                            _connector="OR",
                        ),
                        name="tenant_profile_retention_in_order",
                        violation_error_message="max_retention_ms: use no less than min_retention_ms",
                    ),
                    *(_positive("tenant_profile", name) for name in (*_LIMITS, *_QUOTAS)),
                ],
            },
        ),
        migrations.RunPython(_make_default, migrations.RunPython.noop),
        migrations.AddField(
            model_name="tenant",
            name="profile",
            field=models.ForeignKey(
                default=_DEFAULT_PROFILE,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tenants",
                to="queueapi.tenantprofile",
            ),
        ),
        migrations.AddField("tenant", "description", models.CharField(blank=True, default="", max_length=500)),
        migrations.AddField(
            model_name="tenant",
            name="state",
            field=models.CharField(
                choices=[("active", "Active"), ("suspended", "Suspended")], default="active", max_length=16
            ),
        ),
        migrations.AddField("tenant", "reason", models.CharField(blank=True, default="", max_length=500)),
        migrations.AddField("tenant", "updated_at", models.DateTimeField(auto_now=True)),
        *(migrations.AddField("tenant", name, _quota(name, blank=True, null=True)) for name in _QUOTAS),
        migrations.AddConstraint(
            model_name="tenant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("reason", ""), ("state", "active")),
                    models.Q(("state", "suspended"), models.Q(("reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="tenant_suspended_for_a_reason",
            ),
        ),
        *(migrations.AddConstraint("tenant", _positive("tenant", name)) for name in _QUOTAS),
        migrations.AlterConstraint("tenant", "tenant_name_unique", _name_unique("tenant", "tenant")),
    ]
