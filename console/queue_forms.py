"""What is to become of queues, as people choose it."""

from typing import Any

from django import forms
from django.db.models import Q

from queueapi.actions.pauses import LONGEST_REASON
from queueapi.choices import QueueState
from queueapi.models import Queue
from queueapi.models.queue import MOST_PARTITIONS
from queuecore.topics import SYSTEM_TENANT


class SuccessorField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Queue) -> str:
        return f"{obj.name} ({obj.tenant})"


class DrainForm(forms.Form):
    to = SuccessorField(
        Queue.objects.none(),
        label="Messages published meanwhile",
        required=False,
        empty_label="are refused, and their senders told why",
    )

    def __init__(self, queue: Queue, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer(self.fields["to"], queue)


class ResizeForm(forms.Form):
    partitions = forms.IntegerField(
        min_value=1,
        max_value=MOST_PARTITIONS,
        help_text="As many as services are to share it at once, or more.",
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, queue: Queue, data: Any) -> None:
        """As it is, until something is chosen."""
        super().__init__(data if "partitions" in data else {"partitions": queue.partitions})


class DeletionForm(forms.Form):
    move_to = SuccessorField(
        Queue.objects.none(),
        label="Messages that it has left",
        required=False,
        empty_label="are consumed first, before anything is removed",
    )
    discard_letters = forms.BooleanField(label="Discard the dead letters that nobody has decided on", required=False)

    def __init__(self, queue: Queue, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer(self.fields["move_to"], queue)


class BulkPauseForm(forms.Form):
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        help_text="Whoever finds them paused reads this.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Billing is being moved until 15:00"}),
    )

    def __init__(self, *args: Any, needs_reason: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not needs_reason:
            reason = self.fields["reason"]
            reason.required, reason.widget = False, forms.HiddenInput()


def _offer(field: forms.Field, queue: Queue) -> None:
    """Queues that take the same messages."""
    assert isinstance(field, SuccessorField)  # noqa: S101 (for the type checker)
    mine = Q(tenant=queue.tenant_id) | Q(tenant=SYSTEM_TENANT)
    others = Queue.objects.filter(mine, state=QueueState.ACTIVE, service_type=queue.service_type).exclude(pk=queue.pk)
    field.queryset = others.select_related("tenant")
