"""A widget for choices of which there may be a thousand: Django renders two templates for each of them."""

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class LongSelect(forms.Select):
    """Of choices without groups."""

    def render(
        self,
        name: str,
        value: Any,
        attrs: dict[str, Any] | None = None,
        renderer: Any = None,  # noqa: ARG002
    ) -> SafeString:
        widget = self.get_context(name, value, attrs)["widget"]
        every = (option for _, options, _ in widget["optgroups"] for option in options)
        told = ((option["value"], flatatt(option["attrs"]), option["label"]) for option in every)
        options = format_html_join("\n", '<option value="{}"{}>{}</option>', told)
        return format_html('<select name="{}"{}>{}</select>', name, flatatt(widget["attrs"]), options)
