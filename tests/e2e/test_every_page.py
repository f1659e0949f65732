"""Every page of the console: readable by everybody (WCAG AA, by axe), light and dark, no wider than a phone, on a wall
without tables that scroll, without a complaint of the browser's and without asking another host. All of them take
minutes: here those that most people look at, all in the long tier."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from console.own_pages import OWN
from console.urls import NEEDS
from queueapi.access.table import allows
from queueapi.choices import Role
from queuecore.testing.waiting import wait_until
from queuecore.topics import SYSTEM_TENANT
from tests.e2e.browser import sign_in
from tests.e2e.test_alerts import fire
from tests.e2e.walking import Walk
from tests.system import RunningSystem

PASSWORD = "correct horse battery"
REASON = "a test of all pages"
FIRES_S = 60
# Of what comes after the page, on a machine that has other things to do.
PATIENCE_MS = 30_000
# All that comes over the wire, compressed as it is there.
FIRST_BYTES = 500_000


@pytest.fixture(autouse=True)
def undecided(demo: RunningSystem) -> Iterator[None]:
    """Requests of these tests wait for nobody's decision after them."""
    yield
    for asked in demo.get_all("isolation-requests?state=requested"):
        if asked["reason"] == REASON:
            demo.request("POST", f"isolation-requests/{asked['id']}/withdraw")


def furnish(system: RunningSystem) -> list[str]:
    """Something on every list that links to pages of its own. Where to begin: pages that have more links than the first
    of their kind, and those that a link leads to in a state that the demo had better not be in."""
    name = fire(system)
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    system.request("POST", "silences", {"reason": "a test", "until": until, "subject_key": f"queue:{uuid4()}"})
    channel = {"name": f"Mail {name}", "kind": "email", "options": {"recipients": ["a@example.org"]}}
    system.request("POST", "alert-channels", channel)
    system.request("POST", "tokens", {"name": f"Token {name}", "scopes": ["queues:read"]})
    system.request("POST", "tenant-profiles", {"name": f"Profile {name}"})
    tenant = system.request("POST", "tenants", {"name": f"Tenant {name}"})["id"]
    asked = {"tenant": tenant, "queues": [{"name": "Main", "partitions": 2}], "reason": REASON}
    isolation = system.request("POST", "isolation-requests", asked)["id"]
    spare = {"name": f"Spare-{uuid4().hex[:8]}", "topic": f"spare-{uuid4().hex[:8]}", "handler": "log"}
    queue = system.request("POST", "queues", spare)["id"]
    wait_until(lambda: any(alert["rule_name"] == name for alert in system.get_all("alerts")), FIRES_S)
    wait_until(lambda: system.get_all("rebalances"), FIRES_S)
    wait_until(lambda: system.get_all("services"), FIRES_S)
    rule = next(one for one in system.get_all("alert-rules") if one["name"] == name)
    user, service = system.get_all("users")[0], system.get_all("services")[0]
    letter, operation, rebalance = (first_of(system, rows) for rows in ("dead-letters", "operations", "rebalances"))
    return [
        f"/alert-rules/{rule['id']}/",
        f"/tenants/{own_tenant(system)}/",
        f"/tenants/{own_tenant(system)}/resume/",
        f"/isolation-requests/{isolation}/",
        f"/isolation-requests/{isolation}/retire/",
        f"/isolation-requests/{isolation}/retry/",
        f"/isolation-requests/{isolation}/withdraw/",
        f"/operations/{operation}/cancel/",
        f"/rebalances/{rebalance}/cancel/",
        reverse("revert_letter", args=[letter]),
        f"/queues/{queue}/delete/",
        f"/users/{user['id']}/unlock/",
        f"/services/{service['service_id']}/undrain/",
    ]


def first_of(system: RunningSystem, rows: str) -> str:
    return str(system.request("GET", rows)["results"][0]["id"])


def own_tenant(system: RunningSystem) -> str:
    """One that is not the system's."""
    return next(str(one["id"]) for one in system.get_all("tenants") if one["id"] != str(SYSTEM_TENANT))


def furnish_decisions(system: RunningSystem, tenant: str) -> dict[str, str]:
    """A queue of the tenant's own, paused, with three letters: what each decision can be tried on."""
    name = f"Decided-{uuid4().hex[:8]}"
    told = {"name": name, "topic": name.lower(), "handler": "demo.core", "tenant": tenant}
    queue = system.request("POST", "queues", told)["id"]
    for _ in range(3):
        publish_unreadable(system, queue, tenant)
    # Its first letter may be there before its third message is handled.
    wait_until(lambda: len(system.get_all(f"dead-letters?queue={queue}")) == 3, FIRES_S)
    opened, discarded, sent = (str(one["id"]) for one in system.get_all(f"dead-letters?queue={queue}"))
    system.request("POST", f"queues/{queue}/pause", {"reason": "a test"})
    system.request("POST", "dead-letters/discard", {"letters": [discarded], "reason": "a test"})
    # What is sent again waits in the queue: once nobody reads it.
    wait_until(
        lambda: {one["state"] for one in system.request("GET", f"queues/{queue}/consumers")} == {"paused"}, FIRES_S
    )
    operation = system.request("POST", "replays", {"letters": [sent]})["operation"]
    wait_until(lambda: system.request("GET", f"operations/{operation}")["state"] == "succeeded", FIRES_S)
    return {"open": opened, "discarded": discarded, "sent": sent, "queue": queue}


def publish_unreadable(system: RunningSystem, queue: str, tenant: str) -> None:
    """A message that is a dead letter at once."""
    message = {"tenant": tenant, "entity": str(uuid4()), "payload_base64": "/w=="}
    system.request("POST", f"queues/{queue}/messages", message)


def look_at_decisions(walk: Walk, decided: dict[str, str]) -> None:
    """Pages that come of a form on the list of letters: what would be done to those that were chosen."""
    for name in ("replay_letters", "discard_letters"):
        look_at_plan(walk, name, letter=decided["open"])
    look_at_plan(walk, "restore_letters", letter=decided["discarded"])
    look_at_plan(walk, "release_letters", letter=decided["sent"])


def look_at_plans(walk: Walk, system: RunningSystem) -> None:
    """As well as those that come of the list of queues."""
    decided = furnish_decisions(system, own_tenant(system))
    look_at_decisions(walk, decided)
    look_at_plan(walk, "resume_queues", queue=decided["queue"])
    system.request("POST", f"queues/{decided['queue']}/resume")
    look_at_plan(walk, "pause_queues", queue=decided["queue"])


def look_at_plan(walk: Walk, name: str, **chosen: str) -> None:
    walk.look_at_answer(name, **chosen)
    expect(walk.page.locator("#plan-title")).to_be_visible()


def furnish_tenant(system: RunningSystem, tenant: str) -> list[str]:
    """A queue of its own with a letter and an alert, and something on its other lists. Where to begin."""
    name = f"Own-{uuid4().hex[:8]}"
    queue = system.request("POST", "queues", {"name": name, "topic": name, "handler": "demo.core", "tenant": tenant})
    rule = {"name": name, "metric": "open_letters", "queue": queue["id"], "threshold": 0, "for_s": 0}
    system.request("POST", "alert-rules", rule)
    publish_unreadable(system, queue["id"], tenant)
    asked = {"tenant": tenant, "queues": [{"name": "Main", "partitions": 2}], "reason": REASON}
    isolation = system.request("POST", "isolation-requests", asked)["id"]
    token = {"name": f"Token {name}", "scopes": ["queues:read"], "role": "tenant_viewer", "tenant": tenant}
    system.request("POST", "tokens", token)
    letter = wait_until(lambda: system.get_all(f"dead-letters?queue={queue['id']}"), FIRES_S)[0]["id"]
    alert = wait_until(lambda: [one for one in system.get_all("alerts") if one["rule_name"] == name], FIRES_S)[0]["id"]
    return [
        f"/queues/{queue['id']}/",
        f"/queues/{queue['id']}/partitions/",
        f"/dead-letters/{letter}/",
        f"/alerts/{alert}/",
        f"/isolation-requests/{isolation}/",
        f"/isolation-requests/{isolation}/withdraw/",
    ]


def closed_to(role: Role) -> set[str]:
    """What the table of access, and of a tenant's people the list of what is for them, keeps from that role."""
    is_tenants = role in (Role.TENANT_ADMIN, Role.TENANT_VIEWER)
    return {name for name, (read, _) in NEEDS.items() if not allows(role, *read) or (is_tenants and name not in OWN)}


def offered_to(role: Role) -> set[str]:
    """Where they may do something: other pages may have no link for them, but a button that says why not."""
    return {name for name, (_, change) in NEEDS.items() if allows(role, *change)} - closed_to(role)


def signed_in(browser: Browser, system: RunningSystem, name: str, password: str) -> Page:
    page = browser.new_context(base_url=system.url).new_page()
    sign_in(page, password, name)
    return page


def make_token(page: Page) -> None:
    """One of their own: the list shows nobody else's to them."""
    csrf = next(one["value"] for one in page.context.cookies() if one["name"] == settings.CSRF_COOKIE_NAME)
    asked = {"name": "A token", "scopes": ["queues:read"]}
    answer = page.request.post("/api/v1/tokens", data=asked, headers={"X-CSRFToken": csrf})
    assert answer.ok, answer.text()


def test_pages_that_most_people_look_at(browser: Browser, demo: RunningSystem) -> None:
    page = signed_in(browser, demo, "admin", demo.password)
    walk = Walk(page, demo.url)
    queue = demo.get_all("queues")[0]["id"]
    for path in ("/", "/queues/", f"/queues/{queue}/", f"/queues/{queue}/change/", "/dead-letters/", "/search/?q=main"):
        walk.look_at(path)
    page.context.close()
    assert not walk.complaints, "\n".join(walk.complaints)


def test_what_keys_open(browser: Browser, demo: RunningSystem) -> None:
    page = signed_in(browser, demo, "admin", demo.password)
    walk = Walk(page, demo.url)
    page.keyboard.press("/")
    page.keyboard.type("main")
    expect(page.locator("#search-results [data-hit]").first).to_be_visible(timeout=PATIENCE_MS)
    walk.look_at_opened("search")
    page.reload()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    walk.look_at_opened("keys")
    page.context.close()
    assert not walk.complaints, "\n".join(walk.complaints)


@pytest.mark.full
def test_pages_that_most_people_look_at_on_a_phone(browser: Browser, demo: RunningSystem) -> None:
    page = signed_in(browser, demo, "admin", demo.password)
    walk = Walk(page, demo.url)
    queue, letter = (demo.request("GET", rows)["results"][0]["id"] for rows in ("queues", "dead-letters"))
    lists = ("/", "/queues/", "/dead-letters/?state=open", "/pending-requests/", "/services/", "/alerts/", "/audit/")
    for path in (*lists, f"/queues/{queue}/", f"/queues/{queue}/groups/", f"/dead-letters/{letter}/"):
        walk.look_at_on_a_phone(path)
    page.context.close()
    assert not walk.complaints, "\n".join(walk.complaints)


@pytest.mark.full
def test_administrators_pages(browser: Browser, demo: RunningSystem) -> None:
    firsts = furnish(demo)
    page = signed_in(browser, demo, "admin", demo.password)
    walk = Walk(page, demo.url).all_pages(*firsts, "/")
    look_at_plans(walk, demo)
    unreached = walk.unreached()
    page.context.close()
    assert not walk.complaints, "\n".join(walk.complaints)
    assert not walk.heavy()
    assert not walk.closed
    assert not unreached, f"no link leads to {unreached}: link them, or let the demo have what leads there"
    assert {"overview", "queue", "change_queue", "search", "dead_letter", "alert", "user"} <= walk.seen.keys()


@pytest.mark.full
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
def test_pages_of_those_who_may_not_all(browser: Browser, demo: RunningSystem, role: Role) -> None:
    """What they may not do is told by what cannot be pressed, which is to be read as well."""
    firsts = furnish(demo)
    person = {"name": f"{role}-{uuid4().hex[:8]}", "password": PASSWORD, "role": role}
    demo.request("POST", "users", person)
    page = signed_in(browser, demo, person["name"], PASSWORD)
    if role == Role.OPERATOR:
        make_token(page)
    walk = Walk(page, demo.url).all_pages(*firsts, "/")
    if role == Role.OPERATOR:
        look_at_plans(walk, demo)
    refused, unreached = walk.refused(), walk.unreached(offered_to(role))
    # What does not open says why, which is to be read as well.
    for path in walk.closed.values():
        walk.look_at(path)
    page.context.close()
    assert not walk.complaints, "\n".join(walk.complaints)
    assert refused == closed_to(role)
    assert walk.closed.keys() <= refused
    assert not unreached, f"no link leads the {role} to {unreached}"
    assert {"overview", "queue", "dead_letter", "rebalance"} <= walk.seen.keys()


@pytest.mark.full
@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.TENANT_VIEWER])
def test_pages_of_tenants_people_and_of_strangers(browser: Browser, demo: RunningSystem, role: Role) -> None:
    tenant = demo.request("POST", "tenants", {"name": f"Tenant {uuid4().hex[:8]}"})["id"]
    firsts = furnish_tenant(demo, tenant)
    person = {"name": f"{role}-{uuid4().hex[:8]}", "password": PASSWORD, "role": role, "tenant": tenant}
    demo.request("POST", "users", person)
    page = browser.new_context(base_url=demo.url).new_page()
    walk = Walk(page, demo.url)
    walk.look_at("/login/")
    sign_in(page, PASSWORD, person["name"])
    if role == Role.TENANT_ADMIN:
        page.goto(next(path for path in firsts if path.startswith("/dead-letters/")))
        page.get_by_role("button", name="Replay…").click()
        page.get_by_role("button", name="Replay 1 letter").click()
        expect(page).to_have_url(re.compile("/operations/"))
        firsts.append(f"{urlsplit(page.url).path}cancel/")
        look_at_decisions(walk, furnish_decisions(demo, tenant))
    walk.all_pages(*firsts, f"/tenants/{tenant}/isolate/", "/")
    refused, unreached = walk.refused(), walk.unreached(offered_to(role))
    # What does not open says why, which is to be read as well.
    for path in walk.closed.values():
        walk.look_at(path)
    page.context.close()
    assert not walk.complaints, "\n".join(walk.complaints)
    assert refused == closed_to(role)
    assert walk.closed.keys() <= refused
    assert not unreached, f"no link leads a {role} to {unreached}"
    assert {"overview", "queue", "dead_letter", "alert", "isolation_request"} <= walk.seen.keys()


def test_the_first_load_and_those_after_it_are_small(browser: Browser, demo: RunningSystem) -> None:
    """As a browser that was never here gets them, and then as one that was."""
    page = browser.new_context(base_url=demo.url).new_page()
    walk = Walk(page, demo.url)
    first = walk.weigh("/login/")
    sign_in(page, demo.password)
    assert first + walk.weigh("/") < FIRST_BYTES
    queue = demo.get_all("queues")[0]["id"]
    for path in ("/", "/queues/", f"/queues/{queue}/", "/dead-letters/", "/tenants/", "/partitions/map/", "/audit/"):
        walk.weigh(path)
    page.context.close()
    del walk.sizes["/login/"]
    assert not walk.heavy()
