from collections import Counter
from typing import Any
from uuid import UUID

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Count, Max, Min, Q

CHUNK = 500
NOBODY = UUID(int=0)
ITEM_STATES = {"replayed": "succeeded", "failed_again": "failed"}


def move_letters(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give the letters there are their groups, bodies and replays."""
    alias = schema_editor.connection.alias
    models = {
        name: apps.get_model("queueapi", name).objects.using(alias)
        for name in (
            "DeadLetter",
            "DeadLetterBody",
            "DeadLetterGroup",
            "DeadLetterTally",
            "Operation",
            "Replay",
            "ReplayItem",
        )
    }
    _make_groups(models)
    _make_bodies(models)
    _make_replays(models)


def _make_groups(models: dict[str, Any]) -> None:
    letters = models["DeadLetter"]
    told = (
        letters.order_by()
        .values("queue_id", "fingerprint")
        .annotate(
            exception_class=Max("exception_class"),
            exception_message=Max("exception_message"),
            first_seen=Min("failed_at"),
            last_seen=Max("failed_at"),
            letters=Count("pk"),
            open_letters=Count("pk", filter=Q(state="open")),
        )
    )
    for group in told:
        made = models["DeadLetterGroup"].create(**group)
        members = letters.filter(queue_id=made.queue_id, fingerprint=made.fingerprint)
        members.update(group=made)
        tallies = Counter(members.order_by().values_list("tenant_id", "state"))
        for (tenant, state), number in tallies.items():
            models["DeadLetterTally"].create(group=made, tenant_id=tenant or NOBODY, state=state, letters=number)


def _make_bodies(models: dict[str, Any]) -> None:
    letters = models["DeadLetter"]
    body = models["DeadLetterBody"].model
    ids = list(letters.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), CHUNK):
        chunk = list(letters.filter(pk__in=ids[start : start + CHUNK]))
        models["DeadLetterBody"].bulk_create(
            body(letter_id=letter.pk, headers=letter.headers, stack_trace=letter.stack_trace, payload=letter.payload)
            for letter in chunk
        )
        for letter in chunk:
            letter.payload_size = len(letter.payload)
        letters.bulk_update(chunk, ["payload_size"])


def _make_replays(models: dict[str, Any]) -> None:
    """A replay has its operation's id: what letters refer to stays."""
    letters, item = models["DeadLetter"], models["ReplayItem"].model
    for operation in models["Operation"].filter(kind="replay_letters"):
        replay = models["Replay"].create(
            id=operation.id, operation=operation, filter=operation.params, is_collected=True
        )
        order = {letter: number for number, letter in enumerate(operation.params.get("letters", []))}
        sent = [(order.get(str(letter.pk)), letter) for letter in letters.filter(replay_id=operation.id)]
        models["ReplayItem"].bulk_create(
            item(
                replay=replay,
                letter=letter,
                sequence=number,
                sent_at=letter.replay_sent_at,
                state=ITEM_STATES.get(letter.state, "sent" if letter.replay_sent_at else "pending"),
            )
            for number, letter in sent
            if number is not None
        )
        _count_outcomes(models, replay)


def _count_outcomes(models: dict[str, Any], replay: Any) -> None:
    states = Counter(models["ReplayItem"].filter(replay=replay).values_list("state", flat=True))
    replay.sent = states["sent"] + states["succeeded"] + states["failed"]
    replay.succeeded, replay.failed = states["succeeded"], states["failed"]
    replay.save()


class Migration(migrations.Migration):
    """What letters held becomes rows of their own. Apart from the changes of tables around it: PostgreSQL alters none
    whose rows were changed in the same transaction."""

    dependencies = [("queueapi", "0005_letters")]

    operations = [migrations.RunPython(move_letters, migrations.RunPython.noop, elidable=True)]
