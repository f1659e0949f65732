"""What people type about users and tokens, checked."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django import forms

from console.fields import DurationField, IsolableTenantField
from console.scopes import ScopeRow, scope_rows
from queueapi.access.principals import Principal
from queueapi.access.table import SCOPES, is_within, scopes_of
from queueapi.choices import Role
from queueapi.models import Tenant

_LIFETIMES: Final = {
    "7 days": timedelta(days=7),
    "30 days": timedelta(days=30),
    "90 days": timedelta(days=90),
    "1 year": timedelta(days=365),
    "for ever": None,
}
_READING, _ALL, _CHOSEN = "read", "all", "chosen"
_PRESETS: Final = [
    (_READING, "Read all that its role may see"),
    (_ALL, "Do all that its role may"),
    (_CHOSEN, "What is chosen below"),
]
_MEANINGS: Final = {
    Role.ADMINISTRATOR: "Administrator: everything",
    Role.OPERATOR: "Operator: see all but users; pause, replay, drain, rebalance, acknowledge",
    Role.AUDITOR: "Auditor: see everything, change nothing",
    Role.TENANT_ADMIN: "Tenant administrator: see and work on what is one tenant's",
    Role.TENANT_VIEWER: "Tenant viewer: see what is one tenant's",
}


def _tenant() -> IsolableTenantField:
    return IsolableTenantField(
        help_text="Its name or id: for a tenant's role, and for such alone. Nothing of others is seen.",
        widget=forms.TextInput(attrs={"placeholder": "None: of the whole system", "autocomplete": "off"}),
    )


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=list(_MEANINGS.items()), initial=Role.OPERATOR)
    tenant = _tenant()

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])


class PasswordForm(forms.Form):
    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Eight characters or more, not all digits, and none that many people use.",
    )


class OwnPasswordForm(PasswordForm):
    current = forms.CharField(
        label="The one you have",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        help_text="A wrong one counts as at sign-in.",
    )
    repeated = forms.CharField(
        label="The new one again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Nobody sees what they type here.",
    )
    field_order = ("current", "password", "repeated")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].label = "The new one"

    def clean_repeated(self) -> str:
        repeated: str = self.cleaned_data["repeated"]
        if repeated != self.cleaned_data.get("password", repeated):
            raise forms.ValidationError("This is another one: enter the new one twice.")
        return repeated


class UserForm(RoleForm, PasswordForm):
    name = forms.CharField(
        max_length=150,
        help_text="By which they sign in. It stays.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("name", "password", "role", "tenant")


class TokenForm(forms.Form):
    """For whoever is signed in, who gives no more than they may themselves."""

    name = forms.CharField(
        max_length=100,
        help_text="What it is for.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Nightly replay"}),
    )
    lasts = DurationField(_LIFETIMES, label="Lasts", initial="90 days")
    role = forms.ChoiceField(help_text="The most it may. It ends with whoever made it.")
    tenant = _tenant()
    what = forms.ChoiceField(label="It may", choices=_PRESETS, initial=_READING, widget=forms.RadioSelect)
    scopes = forms.MultipleChoiceField(choices=[(scope, scope) for scope in SCOPES], required=False)

    def __init__(self, maker: Principal, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role = self.fields["role"]
        assert isinstance(role, forms.ChoiceField)  # noqa: S101 (for the type checker)
        role.choices = [(each.value, told) for each, told in _MEANINGS.items() if is_within(each, maker.role)]
        role.initial = maker.role.value
        if maker.tenant_id is not None:
            only = Tenant.objects.filter(pk=maker.tenant_id)
            self.fields["tenant"] = forms.ModelChoiceField(
                only, required=False, initial=maker.tenant_id, empty_label=None
            )

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])

    def scope_rows(self) -> Iterator[ScopeRow]:
        return scope_rows(self["scopes"].value() or ())

    @property
    def wanted_scopes(self) -> list[str]:
        """Of the role, or as they were chosen."""
        given: dict[str, Any] = self.cleaned_data
        if given["what"] == _CHOSEN:
            return list(given["scopes"])
        useful = sorted(scopes_of(given["role"]))
        return [scope for scope in useful if given["what"] == _ALL or scope.endswith(":read")]
