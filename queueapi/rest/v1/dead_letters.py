"""Dead letters over REST: look, discard, restore, release, edit, note, send again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer

from queueapi.access.table import OPERATE, Resource
from queueapi.access.tenancy import visible_filter
from queueapi.actions.dead_letters import (
    MAX_AT_ONCE,
    discard_letters,
    plan_discard,
    plan_release,
    plan_restore,
    release_letters,
    restore_letters,
)
from queueapi.actions.letter_edits import edit_letter, note_group, note_letter, revert_letter
from queueapi.actions.replays import replay_letters
from queueapi.choices import LetterState
from queueapi.models import DeadLetter, DeadLetterGroup, QuarantinedLetter
from queueapi.replaying import ReplaySettings
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.dry_runs import is_dry_run, plans_itself, rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access, requester_of
from queueapi.rest.tenancy import OnlyVisible, seen_by
from queueapi.rest.v1 import dead_letter_serializers as wire
from queueapi.rest.v1.histories import HourQuerySerializer, asked_time
from queueapi.rest.v1.messages import ENCODE_AS, encoding_form
from queueapi.rest.v1.replay_serializers import ReplayPlanSerializer
from queueapi.rest.v1.selections import FILTER_PARAMETERS, filter_in
from queueapi.rest.v1.serializers import OperationSerializer
from queueapi.selectors.dead_letters import letters_for_lists
from queueapi.selectors.histories import letter_history
from queueapi.selectors.letter_filter import LetterFilter, Selection
from queueapi.selectors.replay_plans import plan_replay

# The state that letters are in when they are decided on.
_DECIDED: Final = {
    "discard": LetterState.OPEN,
    "restore": LetterState.DISCARDED,
    "release": LetterState.REPLAYING,
}


class DeadLetterViewSet(Conventional, viewsets.ReadOnlyModelViewSet[DeadLetter]):
    """The newest first. Text and reason are looked for in the newest 25,000 letters that the other filters
    leave."""

    access = Access(Resource.DEAD_LETTERS, changes=OPERATE)
    summaries = {
        "list": "List dead letters",
        "retrieve": "Show a dead letter with its message",
        "discard": "Discard dead letters",
        "restore": "Restore discarded dead letters",
        "release": "Release dead letters that a replay has left behind",
        "replay": "Replay a dead letter",
        "note": "Write a note to a dead letter",
        "message": "Edit what a replay of a dead letter sends",
        "revert": "Let a replay of a dead letter send the original",
    }
    queryset = DeadLetter.objects.all()
    pagination_class = pagination.NewestFailureFirst
    filter_backends = ()

    def get_queryset(self) -> QuerySet[DeadLetter]:
        if self.action != "list":
            return seen_by(self, DeadLetter.objects.select_related("body", "decision", "queue"))
        wanted = visible_filter(requester_of(self.request), filter_in(self.request.query_params))
        return DeadLetter.objects.none() if wanted is None else letters_for_lists(wanted)

    def get_serializer_class(self) -> type[BaseSerializer[DeadLetter]]:
        return wire.LetterLineSerializer if self.action == "list" else wire.LetterSerializer

    @extend_schema(parameters=FILTER_PARAMETERS)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)

    @extend_schema(request=None, responses={202: OperationSerializer})
    @action(detail=True, methods=["post"])
    @plans_itself(ReplayPlanSerializer)
    def replay(self, request: Request, **_: Any) -> Response:
        """Send the letter to its queue again; answers with the operation to follow, or with the plan."""
        letter = self.get_object()
        if is_dry_run(request):
            return Response(ReplayPlanSerializer(plan_replay([letter.id], None, ReplaySettings())).data)
        operation = replay_letters(actor_of(request), [letter.id])
        return Response(OperationSerializer(operation).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=wire.DecisionSerializer, responses=wire.LedgerSerializer)
    @action(detail=False, methods=["post"])
    @plans_itself(wire.PlanSerializer)
    def discard(self, request: Request, **_: Any) -> Response:
        """Give letters up for good; answers with the ledger's entry, or with the plan."""
        given = _given(wire.DecisionSerializer, request)
        return _discard(request, given["selection"], given["reason"])

    @extend_schema(request=wire.DecisionSerializer, responses=wire.LedgerSerializer)
    @action(detail=False, methods=["post"])
    @plans_itself(wire.PlanSerializer)
    def restore(self, request: Request, **_: Any) -> Response:
        """Open discarded letters again; answers as for discarding."""
        given = _given(wire.DecisionSerializer, request)
        return _restore(request, given["selection"], given["reason"])

    @extend_schema(request=wire.DecisionSerializer, responses=wire.LedgerSerializer)
    @action(detail=False, methods=["post"])
    @plans_itself(wire.PlanSerializer)
    def release(self, request: Request, **_: Any) -> Response:
        """Open letters again whose replay is over, and whose messages will not be handled any more; answers as for
        discarding."""
        given = _given(wire.DecisionSerializer, request)
        return _release(request, given["selection"], given["reason"])

    @extend_schema(request=wire.MessageSerializer, responses=wire.EditSerializer, parameters=[ENCODE_AS])
    @action(detail=True, methods=["put"])
    @rehearsed
    def message(self, request: Request, **_: Any) -> Response:
        """Say what a replay shall send instead of the original, which is kept."""
        given, letter = _given(wire.MessageSerializer, request), self.get_object()
        message = given["message"]
        if "payload" in given and (form := encoding_form(letter.queue, request)):
            message = message._replace(data=form.from_json(given["payload"]))
        told = {"reason": given["reason"], "seen": given["seen"]}
        edit = edit_letter(actor_of(request), letter.id, message, **told)
        return Response(wire.EditSerializer(edit, context={"request": request}).data)

    @extend_schema(request=wire.SeenSerializer, responses={204: None})
    @message.mapping.delete
    @rehearsed
    def revert(self, request: Request, **_: Any) -> Response:
        """Let a replay send the original again."""
        given = _given(wire.SeenSerializer, request)
        revert_letter(actor_of(request), self.get_object().id, reason=given["reason"], seen=given["seen"])
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=wire.NoteSerializer, responses=wire.NoteSerializer)
    @action(detail=True, methods=["post"])
    @rehearsed
    def note(self, request: Request, **_: Any) -> Response:
        """Write a note to the letter, instead of the one it has."""
        note = _given(wire.NoteSerializer, request)["note"]
        letter = note_letter(actor_of(request), self.get_object().id, note)
        return Response(wire.NoteSerializer(letter).data)


class QuarantinedLetterViewSet(
    Conventional, OnlyVisible, mixins.ListModelMixin, viewsets.GenericViewSet[QuarantinedLetter]
):
    """Letters that could not be entered into the index, and why. They are in their topics."""

    access = Access(Resource.DEAD_LETTERS)
    summaries = {
        "list": "List dead letters that could not be read",
    }
    queryset = QuarantinedLetter.objects.all()
    serializer_class = wire.QuarantinedSerializer
    pagination_class = pagination.NewestQuarantinedFirst


class DeadLetterGroupViewSet(Conventional, OnlyVisible, viewsets.ReadOnlyModelViewSet[DeadLetterGroup]):
    """A queue's letters of one error. `text` is part of the error's class or message."""

    access = Access(Resource.DEAD_LETTER_GROUPS, changes=OPERATE)
    summaries = {
        "list": "List groups of dead letters",
        "retrieve": "Show a group of dead letters",
        "discard": "Discard a group's dead letters",
        "restore": "Restore a group's discarded dead letters",
        "release": "Release a group's dead letters that a replay has left behind",
        "note": "Write a note to a group of dead letters",
    }
    queryset = DeadLetterGroup.objects.all()
    pagination_class = pagination.NewestSeenFirst
    filterset_fields = {"queue": ["exact"], "fingerprint": ["exact"], "open_letters": ["gte"], "last_seen": ["gte"]}

    @contextmanager
    def holding(self) -> Iterator[None]:
        """The letters that are to be changed before their group, as everywhere."""
        group = self.get_object()
        with transaction.atomic():
            if state := _DECIDED.get(self.action):
                letters = DeadLetter.objects.select_for_update().filter(group=group, state=state).order_by("id")
                list(letters.values_list("pk")[: MAX_AT_ONCE + 1])
            list(DeadLetterGroup.objects.select_for_update().filter(pk=group.pk).values_list("pk"))
            yield

    def get_queryset(self) -> QuerySet[DeadLetterGroup]:
        groups = super().get_queryset()
        text = self.request.query_params.get("text", "").replace("\0", "")
        return groups.filter(Q(exception_class__icontains=text) | Q(exception_message__icontains=text))

    def get_serializer_class(self) -> type[BaseSerializer[DeadLetterGroup]]:
        return wire.GroupLineSerializer if self.action == "list" else wire.GroupSerializer

    @extend_schema(parameters=[OpenApiParameter("text", str)])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)

    @extend_schema(
        summary="Show how many letters of a group came when",
        parameters=[HourQuerySerializer],
        responses=wire.LetterHistorySerializer,
    )
    @action(detail=True, pagination_class=None, filter_backends=[])
    def trend(self, request: Request, **_: Any) -> Response:
        """By the hour, as the pipeline counted them. An hour without any is left out."""
        group, asked = self.get_object(), asked_time(request, HourQuerySerializer)
        return Response(dict(wire.LetterHistorySerializer(asked.told(seen_by(self, letter_history(group)))).data))

    @extend_schema(request=wire.NoteSerializer, responses=wire.GroupLineSerializer)
    @action(detail=True, methods=["post"])
    @rehearsed
    def note(self, request: Request, **_: Any) -> Response:
        """Write a note to the group, for whoever looks at its letters next."""
        group = note_group(actor_of(request), self.get_object().pk, _given(wire.NoteSerializer, request)["note"])
        return Response(wire.GroupLineSerializer(group).data)

    @extend_schema(request=wire.ReasonSerializer, responses=wire.LedgerSerializer)
    @action(detail=True, methods=["post"])
    @plans_itself(wire.PlanSerializer)
    def discard(self, request: Request, **_: Any) -> Response:
        """Give its open letters up for good."""
        wanted = LetterFilter(group=self.get_object().pk, state=LetterState.OPEN)
        return _discard(request, wanted, _given(wire.ReasonSerializer, request)["reason"])

    @extend_schema(request=wire.ReasonSerializer, responses=wire.LedgerSerializer)
    @action(detail=True, methods=["post"])
    @plans_itself(wire.PlanSerializer)
    def restore(self, request: Request, **_: Any) -> Response:
        """Open its discarded letters again."""
        wanted = LetterFilter(group=self.get_object().pk, state=LetterState.DISCARDED)
        return _restore(request, wanted, _given(wire.ReasonSerializer, request)["reason"])

    @extend_schema(request=wire.ReasonSerializer, responses=wire.LedgerSerializer)
    @action(detail=True, methods=["post"])
    @plans_itself(wire.PlanSerializer)
    def release(self, request: Request, **_: Any) -> Response:
        """Open its letters again whose replay is over, and whose messages will not be handled any more."""
        wanted = LetterFilter(group=self.get_object().pk, state=LetterState.REPLAYING)
        return _release(request, wanted, _given(wire.ReasonSerializer, request)["reason"])


def _discard(request: Request, selection: Selection, reason: str) -> Response:
    if is_dry_run(request):
        return Response(wire.PlanSerializer(plan_discard(selection)).data)
    return Response(wire.LedgerSerializer(discard_letters(actor_of(request), selection, reason)).data)


def _restore(request: Request, selection: Selection, reason: str) -> Response:
    if is_dry_run(request):
        return Response(wire.PlanSerializer(plan_restore(selection)).data)
    return Response(wire.LedgerSerializer(restore_letters(actor_of(request), selection, reason)).data)


def _release(request: Request, selection: Selection, reason: str) -> Response:
    if is_dry_run(request):
        return Response(wire.PlanSerializer(plan_release(selection)).data)
    return Response(wire.LedgerSerializer(release_letters(actor_of(request), selection, reason)).data)


def _given(serializer: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    """What was sent, checked."""
    given = serializer(data=request.data, context={"request": request})
    given.is_valid(raise_exception=True)
    checked: dict[str, Any] = given.validated_data
    return checked
