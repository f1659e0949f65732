import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Q

_ROLES = [
    ("administrator", "Administrator"),
    ("operator", "Operator"),
    ("auditor", "Auditor"),
    ("tenant_admin", "Tenant administrator"),
    ("tenant_viewer", "Tenant viewer"),
]
_TENANT_ROLES = ("tenant_admin", "tenant_viewer")
_TENANT_EXACTLY_FOR_ITS_ROLES = Q(role__in=_TENANT_ROLES, tenant__isnull=False) | (
    ~Q(role__in=_TENANT_ROLES) & Q(tenant__isnull=True)
)

KEEP_AUDIT = {
    "sqlite": (
        "create trigger audit_never_changed before update on queueapi_auditentry "
        "begin select raise(abort, 'the audit is never changed'); end",
        "create trigger audit_never_removed before delete on queueapi_auditentry "
        "begin select raise(abort, 'the audit is never changed'); end",
    ),
    "postgresql": (
        "create function refuse_to_change_audit() returns trigger language plpgsql as "
        "$$ begin raise exception 'the audit is never changed'; end $$",
        "create trigger audit_never_changed before update on queueapi_auditentry "
        "for each row execute function refuse_to_change_audit()",
        "create trigger audit_never_removed before delete on queueapi_auditentry "
        "for each row execute function refuse_to_change_audit()",
    ),
}
RELEASE_AUDIT = {
    "sqlite": ("drop trigger audit_never_changed", "drop trigger audit_never_removed"),
    "postgresql": (
        "drop trigger audit_never_changed on queueapi_auditentry",
        "drop trigger audit_never_removed on queueapi_auditentry",
        "drop function refuse_to_change_audit()",
    ),
}


def make_staff_administrators(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Until now whoever was staff might do everything."""
    alias = schema_editor.connection.alias
    users = apps.get_model("auth", "User").objects.using(alias).filter(Q(is_staff=True) | Q(is_superuser=True))
    accounts = apps.get_model("queueapi", "Account").objects.using(alias)
    for user in users.order_by("pk"):
        accounts.create(user=user, role="administrator")


def keep_audit(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in KEEP_AUDIT[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def release_audit(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in RELEASE_AUDIT[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    """Roles, API tokens and lock-outs. The audit tells whose things were changed and by which token, and the database
    itself keeps it as it was written."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("queueapi", "0010_instances_of_the_cluster"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SignInFailures",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=150)),
                ("address", models.CharField(blank=True, max_length=64)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("last_at", models.DateTimeField(db_index=True)),
                ("locked_until", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "sign-in failures",
                "ordering": ["-last_at"],
            },
        ),
        migrations.AddField(
            model_name="auditentry",
            name="request_id",
            field=models.CharField(max_length=100, null=True),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="tenant_id",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="operation",
            name="tenant",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="operations", to="queueapi.tenant"
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="action",
            field=models.CharField(max_length=50),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="actor",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="account",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("role", models.CharField(choices=_ROLES, max_length=16)),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="accounts",
                        to="queueapi.tenant",
                    ),
                ),
            ],
            options={
                "ordering": ["user"],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("digest", models.CharField(max_length=64)),
                ("scopes", models.JSONField()),
                ("role", models.CharField(choices=_ROLES, max_length=16)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="tokens", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tokens",
                        to="queueapi.tenant",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.AddField(
            model_name="auditentry",
            name="token",
            field=models.ForeignKey(
                db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="queueapi.apitoken"
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["actor_name", "at"], name="audit_by_actor"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["action", "at"], name="audit_by_action"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["object_type", "at"], name="audit_by_object_type"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("tenant_id__isnull", False)), fields=["tenant_id", "at"], name="audit_by_tenant"
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("token__isnull", False)), fields=["token", "at"], name="audit_by_token"
            ),
        ),
        migrations.AddConstraint(
            model_name="signinfailures",
            constraint=models.UniqueConstraint(fields=("name", "address"), name="sign_in_failures_once"),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=_TENANT_EXACTLY_FOR_ITS_ROLES, name="account_tenant_exactly_for_its_roles"
            ),
        ),
        migrations.AddIndex(
            model_name="apitoken",
            index=models.Index(fields=["created_at"], name="token_newest"),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=_TENANT_EXACTLY_FOR_ITS_ROLES, name="token_tenant_exactly_for_its_roles"
            ),
        ),
        migrations.RunPython(make_staff_administrators, migrations.RunPython.noop),
        # Last: on SQLite a table that is altered loses its triggers.
        migrations.RunPython(keep_audit, release_audit),
    ]
