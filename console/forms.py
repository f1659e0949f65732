"""What people type, checked."""

import json
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from queueapi.models import Queue, Tenant


class SignInForm(AuthenticationForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "User name"


class PublishForm(forms.Form):
    """One message for a queue."""

    tenant = forms.ModelChoiceField(Tenant.objects.none(), empty_label=None)
    entity = forms.UUIDField(
        initial=uuid4,
        help_text="Messages of one entity keep their order. This one is new; paste another to go on with it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "mono"}),
    )
    form = forms.ChoiceField(
        label="Payload is", choices=[("json", "JSON"), ("text", "Text")], widget=forms.RadioSelect, initial="json"
    )
    payload = forms.CharField(
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 6, "spellcheck": "false", "class": "mono", "placeholder": '{"temperature": 21.5}'}
        ),
    )

    def __init__(self, queue: Queue, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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
        if values.get("form") == "json" and "payload" in values:
            try:
                json.loads(values["payload"])
            except (ValueError, RecursionError) as error:
                self.add_error("payload", ValidationError(f"This is not JSON: {error}. Mend it, or send it as text."))
        return values
