"""Say which partition entities' messages go to."""

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queueapi.selectors.resolving import Resolver, read_entity
from queuecore.errors import ConfigurationError, StoreUnavailable, UnknownQueue
from queuecore.hashing import DEFAULT_HASH, Entity, hash_function, partition_of
from queuecore.topics import MAX_PARTITIONS, SYSTEM_TENANT

# Of a value that is wrong, in an error.
_SHOWN = 30


class Command(BaseCommand):
    help = f"{__doc__} One JSON object a line. A UUID is hashed as one, anything else as text."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--hash", default=DEFAULT_HASH, help="hash function (default: %(default)s)")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--partitions", help="how many partitions there are")
        where.add_argument("--queue", help="a queue instead, by the latest routing version and its hash function")
        parser.add_argument("--tenant", type=UUID, default=SYSTEM_TENANT, help="who sees the queue (default: system)")
        parser.add_argument("entity", nargs="+", help="UUID or text; '-' reads them from standard input, one a line")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["queue"] is None:
                places = _by_number(options["hash"], str(options["partitions"]))
            else:
                places = _by_queue(options["queue"], options["tenant"])
            for text in _entities(options["entity"]):
                self.stdout.write(json.dumps({"entity": text} | places(_entity(text))))
        except (ConfigurationError, StoreUnavailable, UnknownQueue) as error:
            raise CommandError(str(error)) from error


def _by_number(hash_name: str, number: str) -> Callable[[Entity], dict[str, Any]]:
    function, partitions = hash_function(hash_name), _partitions(number)
    return lambda entity: {"hash": function(entity), "partition": partition_of(entity, partitions, function)}


def _by_queue(queue: str, tenant: UUID) -> Callable[[Entity], dict[str, Any]]:
    known = Resolver()

    def told(entity: Entity) -> dict[str, Any]:
        place = known.place(tenant, queue, entity)
        where = {"hash": place.hash, "partition": place.partition}
        return where | {"topic": place.full_topic_name, "version": place.version}

    return told


def _partitions(text: str) -> int:
    digits = text.lstrip("0")
    # Looked at as text first: Python makes no number of thousands of digits.
    if not re.fullmatch(r"[1-9][0-9]{0,8}", digits) or int(digits) > MAX_PARTITIONS:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise CommandError(f"--partitions is {shown!r}; give a whole number of 1 or more, {MAX_PARTITIONS} at most")
    return int(digits)


def _entities(given: list[str]) -> Iterable[str]:
    return (line.rstrip("\r\n") for line in sys.stdin) if given == ["-"] else given


def _entity(text: str) -> Entity:
    try:
        return read_entity(text)
    except UnicodeEncodeError:
        raise CommandError(f"entity {text!r} is not UTF-8 text") from None
