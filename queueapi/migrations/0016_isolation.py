import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Requests for queues of a tenant's own. Pauses that are there are people's."""

    dependencies = [
        ("queueapi", "0015_rest_conventions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="IsolationComment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("author_name", models.CharField(max_length=150)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("text", models.CharField(max_length=2000)),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="IsolationRequest",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("requested", "Requested"),
                            ("approved", "Approved"),
                            ("refused", "Refused"),
                            ("provisioning", "Provisioning"),
                            ("handing_over", "Handing over"),
                            ("active", "Active"),
                            ("retiring", "Retiring"),
                            ("retired", "Retired"),
                            ("failed", "Failed"),
                        ],
                        default="requested",
                        max_length=16,
                    ),
                ),
                ("queues", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                ("requested_by_name", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("decided_by_name", models.CharField(blank=True, default="", max_length=150)),
                ("decided_at", models.DateTimeField(null=True)),
                ("decision", models.CharField(blank=True, default="", max_length=500)),
                ("error", models.TextField(blank=True, default="")),
                ("cut", models.JSONField(default=dict)),
                ("version", models.PositiveBigIntegerField(default=1)),
            ],
            options={
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.RemoveConstraint(
            model_name="pause",
            name="pause_once_per_tenant",
        ),
        migrations.RemoveConstraint(
            model_name="queue",
            name="queue_state_is_legal",
        ),
        migrations.AddField(
            model_name="consumerstanding",
            name="queue_version",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="pause",
            name="operation",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="holds", to="queueapi.operation"
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="tenant",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="operations", to="queueapi.tenant"
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="state",
            field=models.CharField(
                choices=[
                    ("creating", "Creating"),
                    ("handing_over", "Handing over"),
                    ("active", "Active"),
                    ("draining", "Draining"),
                    ("deleting", "Deleting"),
                ],
                default="active",
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.UniqueConstraint(
                condition=models.Q(("operation__isnull", True), ("tenant__isnull", False)),
                fields=("queue", "tenant"),
                name="pause_once_per_tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.UniqueConstraint(
                condition=models.Q(("operation__isnull", False)),
                fields=("queue", "tenant", "operation"),
                name="pause_once_per_operation",
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.CheckConstraint(
                condition=models.Q(("operation__isnull", True), ("tenant__isnull", False), _connector="OR"),
                name="pause_of_operation_is_of_tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["creating", "handing_over", "active", "draining", "deleting"])),
                name="queue_state_is_legal",
            ),
        ),
        migrations.AddField(
            model_name="isolationrequest",
            name="decided_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="isolation_decisions",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="isolationrequest",
            name="operation",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="queueapi.operation"
            ),
        ),
        migrations.AddField(
            model_name="isolationrequest",
            name="requested_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="isolation_requests",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="isolationrequest",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="isolation_requests", to="queueapi.tenant"
            ),
        ),
        migrations.AddField(
            model_name="isolationcomment",
            name="request",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="comments", to="queueapi.isolationrequest"
            ),
        ),
        migrations.AddIndex(
            model_name="isolationrequest",
            index=models.Index(fields=["created_at", "id"], name="isolation_newest"),
        ),
        migrations.AddIndex(
            model_name="isolationrequest",
            index=models.Index(fields=["tenant", "created_at"], name="isolation_of_tenant"),
        ),
        migrations.AddIndex(
            model_name="isolationrequest",
            index=models.Index(fields=["state", "created_at"], name="isolation_by_state"),
        ),
        migrations.AddConstraint(
            model_name="isolationrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "requested",
                            "approved",
                            "refused",
                            "provisioning",
                            "handing_over",
                            "active",
                            "retiring",
                            "retired",
                            "failed",
                        ],
                    )
                ),
                name="isolation_state_is_legal",
            ),
        ),
        migrations.AddConstraint(
            model_name="isolationrequest",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("state__in", ("requested", "approved", "provisioning", "handing_over", "retiring"))
                ),
                fields=("tenant",),
                name="isolation_one_open_per_tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="isolationrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at__isnull", True), ("state__in", ("requested",))),
                    models.Q(models.Q(("state__in", ("requested",)), _negated=True), ("decided_at__isnull", False)),
                    _connector="OR",
                ),
                name="isolation_decided_exactly_when_so",
            ),
        ),
        migrations.AddConstraint(
            model_name="isolationrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state", "refused"),
                    ("decided_by__isnull", True),
                    ("requested_by__isnull", True),
                    models.Q(("decided_by", models.F("requested_by")), _negated=True),
                    _connector="OR",
                ),
                name="isolation_approved_by_another",
            ),
        ),
        migrations.AddConstraint(
            model_name="isolationrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(models.Q(("error", ""), _negated=True), ("state", "failed")),
                    models.Q(("error", ""), models.Q(("state", "failed"), _negated=True)),
                    _connector="OR",
                ),
                name="isolation_error_exactly_when_failed",
            ),
        ),
    ]
