"""Show how far a consumer group is, and set it to another place."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.actions.actor import SYSTEM
from queueapi.actions.offsets import reset_offsets
from queueapi.management.tables import table
from queueapi.runtime import provider
from queueapi.selectors.offset_plans import committed_places, places_of, plan_offsets
from queuecore.errors import QueueError
from queuecore.groups.lag import Standing, read_standings
from queuecore.groups.resetting import (
    AtOffset,
    AtTime,
    Earliest,
    Latest,
    Move,
    ResetPlan,
    Shifted,
    Target,
)
from queuecore.providers.base import QueueAdmin
from queuecore.topics import ProviderPartition


class Command(BaseCommand):
    help = f"{__doc__} A reset is shown first: nothing changes without --apply."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        show = actions.add_parser("show", help="what the group has committed, and its lag in messages")
        reset = actions.add_parser("reset", help="what a reset would mean; with --apply, do it")
        for sub in (show, reset):
            sub.add_argument("group")
            sub.add_argument("--topic", required=sub is reset, help="only this one (default: all the group read)")
            sub.add_argument("--partition", type=int, action="append", help="only this one; may be repeated")
        target = reset.add_mutually_exclusive_group(required=True)
        target.add_argument("--to-earliest", action="store_true", help="everything there is, again")
        target.add_argument("--to-latest", action="store_true", help="nothing but what is yet to come")
        target.add_argument("--to-last", type=int, metavar="COUNT", help="so many before the end")
        target.add_argument("--to-offset", type=int, metavar="OFFSET")
        target.add_argument("--to-time", type=_time_ms, metavar="TIME", help="ISO 8601 with a zone, 2030-01-31T08:00Z")
        target.add_argument("--shift-by", type=int, metavar="COUNT", help="forwards, or backwards where negative")
        reset.add_argument(
            "--apply", metavar="TOKEN", help="do what was shown with this token; the group's consumers must be stopped"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actions: dict[str, Callable[[Any], None]] = {"show": self._show, "reset": self._reset}
        try:
            actions[options["action"]](options)
        except QueueError as error:
            raise CommandError(str(error), returncode=2) from error

    def _show(self, options: Any) -> None:
        admin, group = provider().admin(), options["group"]
        places = _places(admin, options)
        standings = read_standings(admin, {group: places})[group]
        # What nobody can tell the ends of, the group may have committed all the same.
        silent = admin.committed_offsets({group: [place for place in places if place not in standings]})[group]
        rows = [
            _shown(place, standings[place]) if place in standings else (*place, None, None, silent.get(place), None)
            for place in places
        ]
        if not rows:
            raise CommandError(f"group {group!r} has committed nothing; check its name", returncode=2)
        self.stdout.write(table(_HEAD, rows))

    def _reset(self, options: Any) -> None:
        plan = plan_offsets(options["group"], _target(options), topic=options["topic"], partitions=options["partition"])
        self.stdout.write(table((*_HEAD, "new", "skipped", "again", "remark"), map(_planned, plan.moves)))
        if (token := options["apply"]) is None:
            self.stdout.write(
                f"Nothing has changed; to do it, stop the group's consumers and add --apply {plan.token}."
            )
            return
        if token != plan.token:
            raise CommandError(
                f"{token} was shown for another reset: the options are others, or what the group has committed or what "
                f"is stored has changed since. Nothing was done; where the table is right, add --apply {plan.token}",
                returncode=2,
            )
        reset_offsets(SYSTEM, plan)
        self.stdout.write(_done(plan))


_HEAD = ("topic", "partition", "beginning", "end", "committed", "lag")


def _shown(place: ProviderPartition, standing: Standing) -> tuple[str | int | None, ...]:
    return (place.topic, place.partition, standing.beginning, standing.end, standing.committed, standing.lag)


def _planned(move: Move) -> tuple[str | int | None, ...]:
    remark = f"{move.asked} is not stored" if move.is_clamped else "" if move.changes else "as it is"
    return (*_shown(move.place, move.standing), move.offset, move.skipped, move.repeated, remark)


def _done(plan: ResetPlan) -> str:
    changed = sum(move.changes for move in plan.moves)
    return f"Done: group {plan.group} was changed in {changed} of {len(plan.moves)} partition(s)."


def _places(admin: QueueAdmin, options: Any) -> list[ProviderPartition]:
    """Those to show, in order; UnknownTopic where there is none."""
    topic, wanted = options["topic"], options["partition"]
    if topic is not None:
        return places_of(admin, topic, wanted)
    if wanted is not None:
        raise CommandError("--partition is a number inside a topic; add --topic", returncode=2)
    return committed_places(admin, options["group"])


def _target(options: Any) -> Target:
    if options["to_earliest"]:
        return Earliest()
    if options["to_latest"]:
        return Latest()
    for name, target in (("to_last", Latest), ("to_offset", AtOffset), ("to_time", AtTime)):
        if options[name] is not None:
            return target(options[name])
    return Shifted(options["shift_by"])


def _time_ms(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no time; write 2030-01-31T08:00Z") from None
    if time.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} has no time zone; write {text}Z for UTC")
    return round(time.timestamp() * 1000)
