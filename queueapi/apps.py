from django.apps import AppConfig
from django.db.models.signals import post_migrate


class QueueApiConfig(AppConfig):
    name = "queueapi"
    verbose_name = "Switchyard control plane"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from queueapi import checks  # noqa: F401 registers the checks
        from queueapi.actions.alert_rules import restore_default_rules
        from queueapi.actions.tenant_profiles import restore_default_profile
        from queueapi.handlers import load_handlers

        load_handlers()
        post_migrate.connect(restore_default_profile, sender=self)
        post_migrate.connect(restore_default_rules, sender=self)
