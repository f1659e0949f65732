"""What people type about alert channels, checked. What is secret is entered, and never shown again."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from console.typed_secrets import TypedSecrets
from queueapi.alerting.channels import shown_options
from queueapi.choices import ChannelKind
from queueapi.config import config
from queueapi.models import AlertChannel
from queuecore.consuming.handler_options import HIDDEN

_KEEP: Final = "It has one. Empty: it stays."
_KEEP_TYPED: Final = "It is entered, and not shown again. Empty: it stays as it was typed."
_TYPED_TOO_LONG_AGO: Final = "Enter it again: what was typed is not known any more, as you have signed in anew since."
_PRIVATE: Final = "As those of a receiver beside this system."
_NOT_PRIVATE: Final = "This installation allows it nobody; whoever runs it can set SWITCHYARD_WEBHOOK_ALLOW_PRIVATE."


class ChannelForm(forms.Form):
    """Of one kind. `before` is what the channel has, as people may see it; nothing for a new one. `typed` keeps what
    must not be shown again."""

    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    enabled = forms.BooleanField(label="It is on: what rules say is sent", required=False, initial=True)

    def __init__(self, typed: TypedSecrets, *args: Any, before: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.typed, self.before = typed, before or {}
        super().__init__(*args, **kwargs)

    def options(self) -> dict[str, object]:
        """As the kind wants them. What is empty is left out, but for a secret that stays."""
        raise NotImplementedError

    def entered(self) -> dict[str, Any]:
        """As actions want it."""
        given = self.cleaned_data
        return {"name": given["name"], "options": self.options(), "enabled": given["enabled"]}

    def own_fields(self) -> list[forms.BoundField]:
        return [bound for bound in self.visible_fields() if bound.name not in ("name", "enabled")]

    def done(self) -> None:
        """What was typed is stored, and not needed any more."""


class EmailForm(ChannelForm):
    recipients = forms.CharField(
        help_text="One address in each line; one e-mail goes to all of them.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "placeholder": "oncall@example.org"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["recipients"].initial = "\n".join(self.before.get("recipients", ()))

    def options(self) -> dict[str, object]:
        return {"recipients": self.cleaned_data["recipients"].replace(",", "\n").split()}


class SlackForm(ChannelForm):
    url = forms.CharField(
        label="Address",
        help_text="An incoming webhook. Only its host is shown again.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "mono"}),
    )
    timeout_ms = forms.IntegerField(label="Timeout (ms)", min_value=1, max_value=30_000, initial=10_000)
    allow_private = forms.BooleanField(
        label="It may reach addresses that are not on the open network", required=False, help_text=_PRIVATE
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("url", "timeout_ms", "allow_private"):
            if name in self.before:
                self.fields[name].initial = self.before[name]
        private = self.fields["allow_private"]
        if not config().webhook_allow_private and not private.initial:
            private.disabled, private.help_text = True, _NOT_PRIVATE

    def options(self) -> dict[str, object]:
        given = self.cleaned_data
        options: dict[str, object] = {"url": given["url"], "timeout_ms": given["timeout_ms"]}
        return {**options, "allow_private": True} if given["allow_private"] else options


class WebhookForm(SlackForm):
    secret = forms.CharField(
        required=False,
        help_text="Signs each request: 16 characters or more.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "class": "mono"}),
    )
    typed_secret = forms.CharField(required=False, widget=forms.HiddenInput)
    headers = forms.CharField(
        required=False,
        help_text="More of them, one in each line.",
        widget=forms.Textarea(
            attrs={"rows": 2, "spellcheck": "false", "class": "mono", "placeholder": "Authorization: Bearer …"}
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_typed = self.is_bound and (self.data.get("secret") or self.data.get("typed_secret"))
        keeps = {name: _KEEP for name in ("secret", "headers") if self.before.get(name)}
        for name, told in (keeps | ({"secret": _KEEP_TYPED} if is_typed else {})).items():
            self.fields[name].help_text = told
            self.fields[f"forget_{name}"] = forms.BooleanField(label=f"Forget its {name}", required=False)
        order = ("name", "url", "secret", "forget_secret", "headers", "forget_headers")
        self.order_fields(order)

    def clean_headers(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["headers"].splitlines() if line.strip()]
        if wrong := [line for line in lines if ":" not in line]:
            raise ValidationError(f"Write a name, a colon and a value; {wrong[0][:40]!r} has no colon.")
        parts = (line.partition(":") for line in lines)
        return {name.strip(): value.strip() for name, _, value in parts}

    def clean(self) -> dict[str, Any]:
        """A secret is typed once: after that the form has its name alone."""
        given = self.cleaned_data
        name = self.typed.keep(given["secret"]) if given.get("secret") else given.get("typed_secret", "")
        if not given.get("secret") and given.get("forget_secret"):
            name = ""
        if not self.before.get("secret"):
            # Then it is as if none had been typed.
            given.pop("forget_secret", None)
        if name and not given.get("secret"):
            given["secret"] = self.typed.find(name)
            if given["secret"] is None:
                self.add_error("secret", _TYPED_TOO_LONG_AGO)
                name = ""
        data: Any = self.data
        self.data = {**data.dict(), "typed_secret": name}
        given["typed_secret"] = name
        return given

    def options(self) -> dict[str, object]:
        secrets = {name: self._secret(name) for name in ("secret", "headers")}
        return {**super().options(), **{name: value for name, value in secrets.items() if value}}

    def done(self) -> None:
        self.typed.forget(self.cleaned_data["typed_secret"])

    def _secret(self, name: str) -> object:
        if self.cleaned_data[name]:
            return self.cleaned_data[name]
        stays = self.before.get(name) and not self.cleaned_data[f"forget_{name}"]
        return HIDDEN if stays else None


FORMS: Final[Mapping[ChannelKind, type[ChannelForm]]] = {
    ChannelKind.EMAIL: EmailForm,
    ChannelKind.WEBHOOK: WebhookForm,
    ChannelKind.SLACK: SlackForm,
}


def form_of(kind: ChannelKind, typed: TypedSecrets, data: Any = None) -> ChannelForm:
    """For a new channel."""
    return FORMS[kind](typed, data)


def form_for(channel: AlertChannel, typed: TypedSecrets, data: Any = None) -> ChannelForm:
    """For one that is there."""
    before = shown_options(channel.kind, channel.options)
    initial = {"name": channel.name, "enabled": channel.enabled}
    return FORMS[ChannelKind(channel.kind)](typed, data, before=before, initial=initial)
