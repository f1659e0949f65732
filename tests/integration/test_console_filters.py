"""What lists of the console are narrowed by, and what becomes of it where it makes no sense."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from queueapi.models import DeadLetter
from tests.integration.console_things import make_things
from tests.page_forms import confirm, fields_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(admin_client: Client) -> Client:
    """Where there is some of everything."""
    make_things(1)
    confirm(admin_client, reverse("replay_letters"), {"letter": str(DeadLetter.objects.first().pk)})
    return admin_client


def listed(answer: Any) -> list[Any]:
    return list(answer.context["page"].object_list)


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.mark.parametrize(
    "mistyped", [{"tenant": "Acmee"}, {"queue": "Mian"}, {"since": "yesterday"}, {"group": "first"}, {"state": "bogus"}]
)
def test_a_filter_that_makes_no_sense_leaves_nothing_to_decide_on(browser, mistyped) -> None:
    """Left out, it would mean all letters: and what is offered here is to discard all that the filters leave."""
    response = browser.get(reverse("dead_letters"), {"state": "open", **mistyped})
    assert listed(response) == []
    assert "Mend the filters first" in text_of(response)
    assert not re.search(r"(Replay|Discard) all", text_of(response))
    assert response.context["all_matching"] is None


def test_a_filter_of_the_address_alone_is_named_and_can_be_left_out(browser) -> None:
    response = browser.get(reverse("dead_letters"), {"state": "bogus", "q": "cold", "size": "50"})
    assert "The state filter of this address cannot be understood" in text_of(response)
    assert 'href="?q=cold&amp;size=50">Leave it out' in response.content.decode()
    assert listed(browser.get(reverse("dead_letters"), {"page": "x", "size": "7"}))


@pytest.mark.parametrize(
    ("page", "mistyped"),
    [
        ("queues", {"tenant": "Acmee"}),
        ("operations", {"state": "bogus"}),
        ("audit", {"since": "yesterday"}),
        ("ledger", {"until": "tomorrow"}),
        ("dead_letter_groups", {"queue": "Mian"}),
        ("partitions", {"owner": "nobody", "unsettled": "true"}),
        ("tenants", {"profile": "7"}),
        ("users", {"role": "king"}),
    ],
)
def test_no_list_takes_a_filter_that_makes_no_sense_for_none(browser, page, mistyped) -> None:
    assert browser.get(reverse(page)).context["page"].object_list
    response = browser.get(reverse(page), mistyped)
    assert not response.context["page"].object_list
    assert "Mend the filters first" in text_of(response)


def test_queues_that_a_mistyped_filter_means_are_not_exported(browser) -> None:
    answer = browser.get(reverse("export_queues"), {"tenant": "Acmee"})
    assert answer.headers["Location"] == f"{reverse('queues')}?tenant=Acmee"


@pytest.mark.parametrize("page", ["dead_letters", "audit", "ledger"])
@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "1969-12-31T23:59", "9999-01-01T00:00"]
)
def test_a_time_that_is_none_everywhere_is_refused(browser, page, time) -> None:
    for name in ("since", "until"):
        response = browser.get(reverse(page), {name: time})
        assert response.status_code == 200
        assert "Enter a time of the years 1970 to 9998." in text_of(response)
        assert listed(response) == []


def test_times_are_by_utc_or_with_their_zone(browser) -> None:
    for since in ("2020-01-01T00:00", "2020-01-01T00:00:00-12:00"):
        assert listed(browser.get(reverse("audit"), {"since": since}))
        assert not listed(browser.get(reverse("audit"), {"until": since}))


def test_filtering_requests_leaves_the_time_of_their_charts(browser) -> None:
    asked = {"range": "24h", "sort": "service", "page": "2"}
    page = browser.get(reverse("pending_requests"), asked).content.decode()
    assert fields_of(page, 'role="search"') == {"q": "", "range": "24h", "sort": "service"}
