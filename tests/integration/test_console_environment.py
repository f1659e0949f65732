"""Which installation a page is of."""

from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from django.urls import reverse

from queuecore.errors import ConfigurationError


def login(client, settings, **changes: str) -> str:
    settings.SWITCHYARD = replace(django_settings.SWITCHYARD, **changes)
    return client.get(reverse("login")).content.decode()


@pytest.mark.django_db
def test_an_installation_without_a_name_has_no_band(client, settings) -> None:
    page = login(client, settings)
    assert '<span class="environment" title="Which installation this is">local</span>' in page
    assert 'class="band' not in page


@pytest.mark.django_db
def test_its_name_and_colour_are_above_every_page_and_in_the_tab(client, settings) -> None:
    page = login(client, settings, environment_name="Staging <EU>", environment_colour="purple")
    assert 'class="band band-purple"' in page
    assert "(Staging &lt;EU&gt;)</title>" in page


@pytest.mark.django_db
def test_production_is_red_unless_somebody_says_otherwise(client, settings) -> None:
    page = login(client, settings, mode="production")
    assert 'class="band band-red" title="Which installation this is">production<' in page
    assert 'class="band band-grey"' in login(client, settings, mode="production", environment_colour="grey")


@pytest.mark.parametrize("name", ["x" * 41, "two\nlines"])
def test_a_name_is_one_short_line(name) -> None:
    with pytest.raises(ConfigurationError, match="SWITCHYARD_ENVIRONMENT_NAME must be one line"):
        replace(django_settings.SWITCHYARD, environment_name=name).check()
