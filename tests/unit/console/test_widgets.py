"""What is written without templates is what Django's templates write."""

from typing import Any

import pytest
from django import forms
from django.test.html import parse_html

from console.widgets import LongSelect

CHOICES = [("", "Any"), ("1", "<one>"), ('"2"', "Two & more")]


@pytest.mark.parametrize("chosen", ["", "1", '"2"', "gone"])
@pytest.mark.parametrize("attributes", [{"id": "id_x"}, {"id": "id_x", "required": True, "aria-describedby": "help"}])
def test_select(chosen: str, attributes: dict[str, Any]) -> None:
    ours, django_s = LongSelect(choices=CHOICES), forms.Select(choices=CHOICES)
    assert parse_html(ours.render("x", chosen, attributes)) == parse_html(django_s.render("x", chosen, attributes))
