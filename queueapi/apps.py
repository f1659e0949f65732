from django.apps import AppConfig


class QueueApiConfig(AppConfig):
    name = "queueapi"
    verbose_name = "Switchyard control plane"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from queueapi import checks  # noqa: F401 registers the checks
        from queueapi.handlers import load_handlers

        load_handlers()
