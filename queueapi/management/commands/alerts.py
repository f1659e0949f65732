"""Show the alerts that are open, and try a channel."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.actions import alert_channels
from queueapi.actions.actor import SYSTEM
from queueapi.choices import AlertState
from queueapi.management.tables import table
from queueapi.models import Alert, AlertChannel


class Command(BaseCommand):
    help = __doc__
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        show = actions.add_parser("list", help="those that are not over")
        show.add_argument("--json", action="store_true", help="one object in each line, for programs")
        test = actions.add_parser("test", help="send a message to a channel now, and say what came of it")
        test.add_argument("channel", help="its name")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "test":
            self._test(options["channel"])
        else:
            self._list(as_json=options["json"])

    def _list(self, *, as_json: bool) -> None:
        alerts = Alert.objects.exclude(state=AlertState.RESOLVED)
        if as_json:
            for alert in alerts:
                self.stdout.write(json.dumps(_told(alert)))
            return
        head = ("STATE", "SEVERITY", "SINCE", "RULE", "REASON")
        rows = [(one.state, one.severity, f"{one.since:%Y-%m-%d %H:%M}", one.rule_name, one.reason) for one in alerts]
        self.stdout.write(table(head, rows) if rows else "nothing is wrong")

    def _test(self, name: str) -> None:
        channel = AlertChannel.objects.filter(name__iexact=name).first()
        if channel is None:
            names = ", ".join(AlertChannel.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"there is no channel {name!r}; there are: {names}", returncode=2)
        trial = alert_channels.test_channel(SYSTEM, channel)
        if not trial.delivered:
            raise CommandError(trial.error)
        self.stdout.write(f"delivered within {trial.took_ms} ms")


def _told(alert: Alert) -> dict[str, object]:
    names = ("state", "severity", "metric", "rule_name", "subject_key", "subject_name", "value", "threshold", "reason")
    told = {name: getattr(alert, name) for name in names}
    return {"id": str(alert.id), **told, "since": alert.since.isoformat(), "link": alert.link}
