"""What people type, checked."""

import math
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils import timezone

from console.payload_forms import choices, typed
from queueapi.access.backends import address_of
from queueapi.actions.pauses import LONGEST_REASON
from queueapi.actions.sign_ins import locked_until
from queueapi.models import Queue, Tenant
from queueapi.selectors.message_shapes import PayloadForm
from queuecore.messagetypes import MessageForm

_WHOLE_QUEUE = ("", "The whole queue")


class SignInForm(AuthenticationForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "User name"

    def clean(self) -> dict[str, Any]:
        """Who is locked out is told so, and until when, whatever the password."""
        until = locked_until(self.data.get("username", ""), address_of(self.request))
        if until is not None:
            wait = max(math.ceil((until - timezone.now()).total_seconds() / 60), 1)
            minutes = "1 minute" if wait == 1 else f"{wait} minutes"
            raise ValidationError(f"Too many wrong passwords: wait {minutes}, then try again.", code="locked_out")
        return super().clean()


class PublishForm(forms.Form):
    """One message for a queue."""

    tenant = forms.ModelChoiceField(Tenant.objects.none(), empty_label=None)
    entity = forms.UUIDField(
        initial=uuid4,
        help_text="Messages of one entity keep their order. This one is new; paste another to go on with it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "mono"}),
    )
    form = forms.TypedChoiceField(label="Payload is", coerce=PayloadForm, widget=forms.RadioSelect)
    payload = forms.CharField(
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 6, "spellcheck": "false", "class": "mono", "placeholder": '{"temperature": 21.5}'}
        ),
    )

    def __init__(self, queue: Queue, *args: Any, message_form: MessageForm | None = None, **kwargs: Any) -> None:
        """`message_form` is what the queue carries, where anybody said so: what is typed is stored as that."""
        super().__init__(*args, **kwargs)
        self._message_form = message_form
        form = self.fields["form"]
        assert isinstance(form, forms.TypedChoiceField)  # noqa: S101 (for the type checker)
        form.choices = choices((PayloadForm.JSON, PayloadForm.TEXT), message_form)
        [form.initial, _] = form.choices[0]
        if message_form is not None:
            form.help_text = (
                f"The queue carries {message_form.name}: it is typed as JSON, and stored as Protocol Buffers. JSON and "
                "text are stored as they are typed."
            )
            self.fields["payload"].widget.attrs.pop("placeholder")
        everyone = Tenant.objects.all()
        tenant = self.fields["tenant"]
        assert isinstance(tenant, forms.ModelChoiceField)  # noqa: S101 (for the type checker)
        only = queue.only_tenant_id
        tenant.queryset = everyone.filter(id=only) if only else everyone

    def clean_payload(self) -> str:
        """As it was typed: browsers send every line end as CR LF."""
        return str(self.cleaned_data["payload"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if {"form", "payload"} <= values.keys():
            try:
                values["data"] = typed(values["form"], values["payload"], self._message_form)
            except ValidationError as error:
                self.add_error("payload", error)
        return values


class PauseForm(forms.Form):
    """What shall stand still, and why."""

    what = forms.ChoiceField(label="Pause", required=False)
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        help_text="Whoever finds it paused reads this.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Billing is being moved until 15:00"}),
    )

    def __init__(self, queue: Queue, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        what = self.fields["what"]
        assert isinstance(what, forms.ChoiceField)  # noqa: S101 (for the type checker)
        only = queue.only_tenant_id
        self._tenants = {str(tenant.pk): tenant for tenant in Tenant.objects.all()} if only is None else {}
        what.choices = [
            _WHOLE_QUEUE,
            ("One tenant's messages", [(key, tenant.name) for key, tenant in self._tenants.items()]),
            ("One partition", [(str(number), f"Partition {number}") for number in queue.partition_numbers]),
        ]

    @property
    def target(self) -> dict[str, Any]:
        """As `pause_queue` wants it."""
        what = self.cleaned_data["what"]
        if what in self._tenants:
            return {"tenant": self._tenants[what]}
        return {"partition": int(what)} if what else {}
