"""Channels: what they are configured with, what arrives there, and what becomes of it where they are down."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queueapi.actions import alert_channels as actions
from queueapi.actions.actor import Actor
from queueapi.actions.alert_deliveries import GIVEN_UP_AFTER, LEASE, claim_deliveries, record_failure, record_sent
from queueapi.actions.alert_notices import ToTell, tell
from queueapi.actions.alerts import purge_alerts
from queueapi.actions.tenants import ensure_system_tenant
from queueapi.alerting.channels import open_channel
from queueapi.alerting.errors import ChannelFailed, ChannelRefused
from queueapi.alerting.messages import Message, Notice, plain_text, slack_body, subject_line
from queueapi.choices import DeliveryState, NoticeKind, Role
from queueapi.errors import InvalidInput
from queueapi.models import AlertChannel, AlertDelivery, AlertNotice, AlertRule, AuditEntry, Queue
from queuecore.consuming.handler_options import HIDDEN
from tests.alerts import make_alert, make_channel, make_rule
from tests.integration.mail_sink import MailSink
from tests.integration.web_receiver import Receiver, answer
from tests.people import api_of, person
from workers.alerts import SIDE_BY_SIDE, deliver_alerts

NOW = datetime(2026, 3, 14, 9, 15, tzinfo=UTC)
ADA = Actor("ada")
SECRET = "a secret of some length"
NOTICE = Notice(
    notice="fired",
    alert=str(uuid4()),
    rule="Many messages wait",
    severity="critical",
    metric="lag_messages",
    subject="Main",
    tenant=None,
    value=150.0,
    unit="messages",
    threshold=100.0,
    reason="150 messages wait in queue <Main> & more",
    since=NOW.isoformat(),
    path="/queues/1/",
)
MESSAGE = Message(uuid4(), NOW, (NOTICE,))


@pytest.fixture(autouse=True)
def _installation(settings) -> None:
    settings.SWITCHYARD = replace(
        settings.SWITCHYARD, webhook_allow_private=True, public_url="https://switchyard.example.org"
    )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def mail(settings) -> Iterator[MailSink]:
    with MailSink() as sink:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sink.port
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        yield sink


@pytest.fixture
def queue(db) -> Queue:
    return Queue.objects.create(tenant=ensure_system_tenant(), name="Main", topic="main", handler="log")


def hook(receiver: Receiver, kind: str = "webhook", **options):
    return {"kind": kind, "options": {"url": receiver.url(), "allow_private": True, **options}}


class TestWhatArrives:
    def test_a_webhook_gets_json_signed(self, receiver: Receiver) -> None:
        channel = hook(receiver, secret=SECRET, headers={"Authorization": "Bearer x"})
        open_channel(**channel).send(MESSAGE)
        (request,) = receiver.requests
        body, headers = json.loads(request.body), request.headers
        assert (body["type"], body["timestamp"]) == ("alerts", NOW.isoformat())
        [told] = body["alerts"]
        assert told == {
            **{k: v for k, v in NOTICE.items() if k != "path"},
            "url": "https://switchyard.example.org/queues/1/",
        }
        assert (headers["content-type"], headers["authorization"]) == ("application/json", "Bearer x")
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
        expected = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        open_channel(**channel).send(MESSAGE)
        assert receiver.requests[1].headers["webhook-id"] == headers["webhook-id"], "a repetition can be told"

    def test_a_chat_gets_a_line_that_names_cannot_break(self, receiver: Receiver) -> None:
        open_channel(**hook(receiver, "slack")).send(MESSAGE)
        text = json.loads(receiver.requests[0].body)["text"]
        assert "*CRITICAL fired: Many messages wait, Main*" in text
        assert "150 messages wait in queue &lt;Main&gt; &amp; more" in text
        assert "(<https://switchyard.example.org/queues/1/|look>)" in text

    def test_of_very_many_a_chat_gets_the_first(self) -> None:
        text = json.loads(slack_body(replace(MESSAGE, notices=(NOTICE,) * 25)))["text"]
        assert text.count("CRITICAL") == 20
        assert text.endswith("and 5 more: https://switchyard.example.org/")

    def test_an_e_mail_goes_through_the_server_that_is_set(self, mail: MailSink) -> None:
        open_channel("email", {"recipients": ["ops@example.org", "ada@example.org"]}).send(MESSAGE)
        [sent] = mail.mails
        assert sent.recipients == ["ops@example.org", "ada@example.org"]
        assert sent.message["Subject"] == "[Switchyard] CRITICAL fired: Many messages wait, Main"
        assert sent.message["Message-ID"] == f"<{MESSAGE.id.hex}@switchyard>"
        assert sent.text.replace("\r\n", "\n") == plain_text(MESSAGE)
        assert "https://switchyard.example.org/queues/1/" in sent.text

    def test_a_subject_is_one_line_whatever_names_hold(self) -> None:
        wild = Notice(**{**NOTICE, "rule": "a\r\nBcc: evil@example.org"})
        assert "\n" not in subject_line(replace(MESSAGE, notices=(wild, wild)))
        assert subject_line(replace(MESSAGE, notices=(wild, wild))).endswith("and 1 more")


class TestWhatGoesWrong:
    @pytest.mark.parametrize(("status", "error"), [(500, ChannelFailed), (429, ChannelFailed), (404, ChannelRefused)])
    def test_a_receiver_that_refuses_for_now_or_for_good(self, receiver: Receiver, status, error) -> None:
        receiver.next.append(answer(status, b"no such hook"))
        with pytest.raises(error, match=f"answered {status} .*: no such hook"):
            open_channel(**hook(receiver)).send(MESSAGE)

    @pytest.mark.parametrize("status", [404, 500])
    def test_what_a_receiver_repeats_of_its_secrets_is_hidden(self, receiver: Receiver, status) -> None:
        path, token = "/api/hooks/T0000001/s3cret%20word?key=another%2Fone", "opensesame"
        said = f"no POST {path} ({path.replace('/', chr(92) + '/')}), s3cret word, S3CRET WORD, another/one, {token}"
        receiver.next.append(answer(status, said.encode()))
        channel = hook(receiver, headers={"Authorization": f"Bearer {token}"})
        channel["options"]["url"] = receiver.url(path)
        with pytest.raises((ChannelFailed, ChannelRefused)) as caught:
            open_channel(**channel).send(MESSAGE)
        told = caught.value.message.lower()
        assert told.count(HIDDEN) >= 4
        for secret in ("T0000001", "s3cret", "another", token):
            assert secret.lower() not in told

    def test_redirects_are_not_followed(self, receiver: Receiver) -> None:
        receiver.next.append(answer(302, Location="http://169.254.169.254/"))
        with pytest.raises(ChannelRefused, match="redirects are not followed"):
            open_channel(**hook(receiver)).send(MESSAGE)

    def test_one_that_is_down(self, receiver: Receiver) -> None:
        with pytest.raises(ChannelFailed, match="cannot be reached"):
            open_channel("slack", {"url": "http://127.0.0.1:1/", "allow_private": True}).send(MESSAGE)

    def test_a_name_that_leads_into_the_own_network_is_not_followed(self) -> None:
        with pytest.raises(ChannelRefused, match="is not on the open network"):
            open_channel("webhook", {"url": "http://localhost:1/"}).send(MESSAGE)

    def test_a_mail_server_that_refuses(self, mail: MailSink) -> None:
        mail.refusals.append(b"451 try later")
        with pytest.raises(ChannelFailed, match=r"did not take it: SMTPDataError: .*try later"):
            open_channel("email", {"recipients": ["ops@example.org"]}).send(MESSAGE)

    def test_without_a_mail_server_it_is_said_what_to_set(self, settings) -> None:
        settings.EMAIL_HOST = ""
        with pytest.raises(ChannelFailed, match="SWITCHYARD_EMAIL_HOST"):
            open_channel("email", {"recipients": ["ops@example.org"]}).send(MESSAGE)


@pytest.mark.django_db
class TestChannels:
    @pytest.mark.parametrize(
        ("fields", "remedy"),
        [
            ({"kind": "pigeon", "options": {}}, "there is no 'pigeon'; choose one of email, webhook, slack"),
            ({"kind": "email", "options": {}}, "'recipients' is missing"),
            ({"kind": "email", "options": {"recipients": ["nobody"]}}, "'nobody' is no e-mail address"),
            ({"kind": "webhook", "options": {"url": "ftp://x"}}, "must begin with http"),
            ({"kind": "webhook", "options": {"url": "https://a.example", "secret": "short"}}, "16 random ones or more"),
            ({"kind": "slack", "options": {"url": "http://10.0.0.1/"}}, "is not on the open network"),
            ({"kind": "slack", "options": {"url": "https://a.example", "secret": "x" * 16}}, "no option 'secret'"),
            (
                {"kind": "webhook", "options": {"url": "https://a.example", "headers": {"Host": "x"}}},
                "set by Switchyard",
            ),
            ({"kind": "email", "options": ["x"]}, "give an object"),
        ],
    )
    def test_what_cannot_work_is_refused_when_it_is_entered(self, fields, remedy) -> None:
        with pytest.raises(InvalidInput, match=remedy):
            actions.create_channel(ADA, name="x", **fields)

    def test_private_addresses_are_for_the_installation_to_allow(self, settings) -> None:
        settings.SWITCHYARD = replace(settings.SWITCHYARD, webhook_allow_private=False)
        with pytest.raises(InvalidInput, match="SWITCHYARD_WEBHOOK_ALLOW_PRIVATE"):
            make_channel(kind="slack", options={"url": "http://10.0.0.1/", "allow_private": True})

    def test_secrets_are_hidden_and_kept_where_they_come_back_so(self) -> None:
        options = {"url": "https://a.example/hook/s3cret", "secret": SECRET}
        channel = make_channel(kind="webhook", options=options)
        shown = actions.told(channel)["options"]
        assert shown == {"url": f"https://a.example/{HIDDEN}", "secret": HIDDEN}
        assert SECRET not in json.dumps(list(AuditEntry.objects.values("before", "after")))
        assert actions.change_channel(ADA, channel, options={**shown, "timeout_ms": 5000}).options == {
            **options,
            "timeout_ms": 5000,
        }
        with pytest.raises(InvalidInput, match="enter the value itself"):
            actions.change_channel(ADA, channel, options={**shown, "url": "https://other.example/"})

    def test_a_secret_that_changes_is_another_version(self) -> None:
        channel = make_channel(kind="webhook", options={"url": "https://a.example/", "secret": SECRET})
        changed = actions.change_channel(ADA, channel, options={"url": "https://a.example/", "secret": SECRET[::-1]})
        assert (changed.version, AuditEntry.objects.latest("id").action) == (2, "change")
        assert actions.change_channel(ADA, changed, enabled=True).version == 2

    def test_one_that_is_deleted_is_no_rules_any_more(self, queue) -> None:
        channel = make_channel()
        rule = make_rule(queue, channels=[channel])
        actions.delete_channel(ADA, channel)
        kept = AlertRule.objects.get(pk=rule.pk)
        assert (list(kept.channels.all()), kept.version) == ([], 2)

    def test_a_test_sends_now_and_says_what_came_of_it(self, receiver: Receiver) -> None:
        channel = make_channel(name="pager", **hook(receiver))
        good = actions.test_channel(ADA, channel)
        assert (good.delivered, good.error) == (True, "")
        [told] = json.loads(receiver.requests[0].body)["alerts"]
        assert (told["notice"], told["reason"]) == ("test", "ada wants to see whether alerts arrive here; they do")
        receiver.next.append(answer(500))
        bad = actions.test_channel(ADA, channel)
        assert (bad.delivered, "answered 500" in bad.error) == (False, True)
        assert [entry.after["delivered"] for entry in AuditEntry.objects.filter(action="test").order_by("id")] == [
            True,
            False,
        ]


def wait_for(channel: AlertChannel, queue: Queue, count: int = 1, created_at: datetime = NOW) -> list[AlertDelivery]:
    """So many alerts that this channel is to be told of, each by itself."""
    for number in range(count):
        alert = make_alert(queue, make_rule(queue, channels=[channel]))
        tell([ToTell(alert, NoticeKind.FIRED)], created_at + timedelta(seconds=number))
    return list(channel.deliveries.order_by("created_at"))


class TestHistory:
    """What a channel was ever told costs nobody anything who wants a part of it."""

    @staticmethod
    def plan(sql: str) -> str:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                # Of a table with few rows it reads all, whatever indexes there are.
                cursor.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
            cursor.execute(f"EXPLAIN {'' if connection.vendor == 'postgresql' else 'QUERY PLAN '}{sql}")
            return "; ".join(row[-1] for row in cursor.fetchall())

    @staticmethod
    def sorts(plan: str) -> bool:
        return "TEMP B-TREE" in plan or "Sort " in plan

    @pytest.mark.parametrize(
        ("rows", "index"),
        [
            (lambda channel: channel.deliveries.filter(state="pending").order_by("created_at", "id"), "next"),
            (lambda _: AlertDelivery.objects.filter(finished_at__lt=NOW).order_by("finished_at"), "by_finish"),
            (lambda channel: AlertNotice.objects.filter(channel=channel).order_by(), "of_channel"),
        ],
    )
    def test_what_is_looked_for_has_an_index(self, queue, rows, index) -> None:
        with CaptureQueriesContext(connection) as asked:
            list(rows(make_channel()).values("pk"))
        found = self.plan(asked[-1]["sql"])
        assert f"_{index} " in found
        assert not self.sorts(found)

    def test_a_page_counts_what_it_shows(self, queue) -> None:
        channel = make_channel()
        alerts = [make_alert(queue, make_rule(queue, channels=[channel])) for _ in range(3)]
        tell([ToTell(alert, NoticeKind.FIRED) for alert in alerts], NOW)
        AlertDelivery.objects.create(channel=channel, created_at=NOW - timedelta(hours=1), due_at=NOW)
        with CaptureQueriesContext(connection) as asked:
            page = api_of(person("root", Role.OPERATOR)).get(f"/api/v1/alert-channels/{channel.id}/deliveries").json()
        assert [row["notices"] for row in page["results"]] == [3, 0]
        [sql] = [query["sql"] for query in asked if "notice_count" in query["sql"]]
        assert not self.sorts(self.plan(sql)), "neither grouped nor sorted: the page alone is read"

    def test_old_deliveries_go_a_part_at_a_time(self, db) -> None:
        channel = make_channel()
        ended = {"state": "sent", "attempts": 1, "created_at": NOW, "due_at": NOW}
        times = [NOW - timedelta(seconds=number) for number in range(1001)]
        AlertDelivery.objects.bulk_create(
            AlertDelivery(channel=channel, finished_at=each, **ended) for each in (*times, NOW + timedelta(days=1))
        )
        with CaptureQueriesContext(connection) as asked:
            purge_alerts(NOW + timedelta(hours=1))
        deleted = [one for one in asked if one["sql"].startswith('DELETE FROM "queueapi_alertdelivery"')]
        assert (len(deleted) > 1, AlertDelivery.objects.count()) == (True, 1)


def a_minute_later() -> datetime:
    return NOW + timedelta(minutes=1)


def states(channel: AlertChannel) -> list[tuple[str, int]]:
    return list(channel.deliveries.order_by("created_at").values_list("state", "attempts"))


class TestDelivering:
    @pytest.fixture(autouse=True)
    def _database(self, transactional_db) -> None:
        """Threads send, and the database is this one's alone."""

    def test_what_is_due_is_sent_in_order(self, queue, receiver: Receiver) -> None:
        channel = make_channel(**hook(receiver))
        deliveries = wait_for(channel, queue, 3)
        assert deliver_alerts(a_minute_later) == 3
        assert [request.headers["webhook-id"] for request in receiver.requests] == [
            f"msg_{one.id.hex}" for one in deliveries
        ]
        assert states(channel) == [("sent", 1)] * 3
        assert deliver_alerts(a_minute_later) == 0

    def test_a_channel_that_is_down_holds_up_no_other_and_nothing_is_lost(self, queue, receiver, mail) -> None:
        down, well = make_channel(**hook(receiver)), make_channel()
        wait_for(down, queue, 2)
        wait_for(well, queue, 2)
        receiver.next.append(answer(503))
        deliver_alerts(lambda: NOW + timedelta(minutes=1))
        assert states(well) == [("sent", 1)] * 2
        assert states(down) == [("pending", 1), ("pending", 0)], "what comes later does not overtake"
        assert "answered 503" in down.deliveries.order_by("created_at")[0].error
        deliver_alerts(lambda: NOW + timedelta(minutes=1, seconds=9))
        assert len(receiver.requests) == 1
        deliver_alerts(lambda: NOW + timedelta(minutes=1, seconds=10))
        assert states(down) == [("sent", 2), ("sent", 1)]

    def test_what_is_refused_for_good_is_given_up_and_the_next_is_tried(self, queue, receiver: Receiver) -> None:
        channel = make_channel(**hook(receiver))
        wait_for(channel, queue, 2)
        receiver.next.append(answer(410))
        deliver_alerts(a_minute_later)
        assert states(channel) == [("failed", 1), ("sent", 1)]

    def test_one_that_is_switched_off_waits(self, queue, receiver: Receiver) -> None:
        channel = make_channel(**hook(receiver))
        wait_for(channel, queue)
        actions.change_channel(ADA, channel, enabled=False)
        assert deliver_alerts(a_minute_later) == 0
        actions.change_channel(ADA, channel, enabled=True)
        assert deliver_alerts(a_minute_later) == 1

    def test_who_died_meanwhile_leaves_it_to_the_next(self, queue) -> None:
        wait_for(make_channel(), queue)
        assert len(claim_deliveries(NOW, at_most=8)) == 1
        assert claim_deliveries(NOW, at_most=8) == []
        [again] = claim_deliveries(NOW + LEASE, at_most=8)
        assert again.attempts == 2

    def test_what_cannot_begin_yet_is_nobodys(self, queue) -> None:
        """A lease that began before its turn would be over before its end, and somebody else would send it too."""
        for number in range(3):
            wait_for(make_channel(), queue, created_at=NOW - timedelta(minutes=number))
        first, rest = claim_deliveries(NOW, at_most=2), claim_deliveries(NOW, at_most=2)
        assert [one.created_at for one in (*first, *rest)] == [NOW - timedelta(minutes=age) for age in (2, 1, 0)]

    def test_more_channels_than_go_side_by_side_are_all_told(self, queue, receiver: Receiver) -> None:
        for _ in range(SIDE_BY_SIDE + 1):
            wait_for(make_channel(**hook(receiver)), queue)
        assert deliver_alerts(a_minute_later) == len(receiver.requests) == SIDE_BY_SIDE + 1

    def test_what_was_sent_is_noted_while_others_still_wait_for_their_answers(self, queue, receiver, mail) -> None:
        slow, quick = make_channel(**hook(receiver)), make_channel()
        wait_for(slow, queue)
        wait_for(quick, queue, created_at=NOW + timedelta(seconds=1))
        times, noted = count(), Event()

        def now() -> datetime:
            """It is asked for when they are claimed, and then to note each."""
            if next(times):
                noted.set()
            return a_minute_later()

        receiver.next.append(lambda handler: answer(204 if noted.wait(5) else 503)(handler))
        deliver_alerts(now)
        assert states(slow) == states(quick) == [("sent", 1)]

    def test_who_comes_back_after_its_lease_changes_nothing(self, queue) -> None:
        wait_for(make_channel(), queue)
        [first] = claim_deliveries(NOW, at_most=8)
        [second] = claim_deliveries(NOW + LEASE, at_most=8)
        record_failure(first, "late", NOW + LEASE, may_help_to_retry=False)
        record_sent(second, NOW + LEASE)
        assert AlertDelivery.objects.get().state == DeliveryState.SENT

    def test_pauses_grow_and_after_a_day_it_is_given_up(self, queue) -> None:
        wait_for(make_channel(), queue)
        now, pauses = NOW, []
        while (delivery := AlertDelivery.objects.get()).state == DeliveryState.PENDING:
            now = delivery.due_at
            for claimed in claim_deliveries(now, at_most=8):
                record_failure(claimed, "down", now, may_help_to_retry=True)
            pauses.append((AlertDelivery.objects.get().due_at - now).total_seconds())
        assert pauses[:7] == [10, 20, 40, 80, 160, 320, 600]
        assert (delivery.state, now - NOW >= GIVEN_UP_AFTER, delivery.attempts < 200) == ("failed", True, True)
        assert delivery.error == "down"

    def test_what_is_no_news_any_more_is_given_up_and_never_sent(self, queue, receiver: Receiver) -> None:
        """Also while the channel is off: nobody hears of last week's alerts when it is switched on."""
        channel = make_channel(**hook(receiver), enabled=False)
        wait_for(channel, queue)
        wait_for(channel, queue, created_at=NOW + timedelta(hours=20))
        assert deliver_alerts(lambda: NOW + GIVEN_UP_AFTER) == 0
        assert states(channel) == [("failed", 0), ("pending", 0)]
        assert "it waited for a day" in channel.deliveries.order_by("created_at")[0].error
        actions.change_channel(ADA, channel, enabled=True)
        assert deliver_alerts(lambda: NOW + GIVEN_UP_AFTER) == 1
        assert len(receiver.requests) == 1
