"""Handlers by name: registered by decorator or entry point, typed, configured."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from google.protobuf.struct_pb2 import Struct

from queuecore.consuming import handlers
from queuecore.consuming.context import DeliveryContext, NoComposer, OpenDelivery, Workplace
from queuecore.consuming.handler_options import HIDDEN, SECRET_OPTION, hide_secrets, keep_secrets, read_options
from queuecore.consuming.handlers import bind, check_handler, check_handler_name, find_handler, handler, handler_names
from queuecore.consuming.registry import HandlerRegistry
from queuecore.errors import ConfigurationError, UndecodableMessage, UnknownHandler
from queuecore.messages import NO_HEADERS, QueueMessage, Record
from queuecore.topics import TopicPartitionInfo

INFO = TopicPartitionInfo("tb_rule_engine", 0)


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_registry", HandlerRegistry())


def message(data: bytes = b"", headers: Mapping[str, bytes] = NO_HEADERS) -> Record:
    return Record(INFO.full_topic_name, 0, 7, 0, None, headers, data)


def delivery(record: Record) -> DeliveryContext:
    return OpenDelivery(Workplace("Main", {INFO.place: INFO}, NoComposer()), record, 1)


def deliver(function: Callable[..., Any], record: Record) -> object:
    returned = function(record, delivery(record))
    return asyncio.run(returned) if inspect.isawaitable(returned) else returned


class TestNames:
    def test_a_handler_is_found_by_its_name(self) -> None:
        @handler("billing", timeout_ms=500)
        def bill(record: Record, context: DeliveryContext) -> None: ...

        assert find_handler("billing").function is bill
        assert find_handler("billing").timeout_ms == 500
        assert bind("billing") is bill
        assert handler_names() == ["billing"]

    def test_a_slip_of_the_pen_gets_a_suggestion(self) -> None:
        handler("billing")(lambda record, context: None)
        with pytest.raises(UnknownHandler, match="did you mean 'billing'"):
            check_handler_name("biling")
        with pytest.raises(UnknownHandler, match="there are: billing"):
            check_handler_name("something else")
        check_handler_name("billing")

    def test_without_any_that_is_said(self) -> None:
        with pytest.raises(UnknownHandler, match="there are: none"):
            find_handler("billing")

    def test_two_functions_cannot_have_one_name(self) -> None:
        @handler("billing")
        def bill(record: Record, context: DeliveryContext) -> None: ...

        def other(record: Record, context: DeliveryContext) -> None: ...

        with pytest.raises(ConfigurationError) as refused:
            handler("billing")(other)
        assert f"{__name__}:{bill.__qualname__} and {__name__}:{other.__qualname__}" in refused.value.message
        assert bind("billing") is bill

    def test_a_module_that_is_imported_again_takes_its_own_place(self) -> None:
        def imported() -> Callable[[Record, DeliveryContext], None]:
            @handler("billing")
            def bill(record: Record, context: DeliveryContext) -> None: ...

            return bill

        imported()
        again = imported()
        assert bind("billing") is again

    def test_what_cannot_be_a_handler_is_refused(self) -> None:
        def later(record: Record, context: DeliveryContext):
            yield record

        for name, function, options, remedy in (
            ("a b", print, {}, "letters, digits"),
            ("", print, {}, "letters, digits"),
            ("billing", "bill", {}, "give a function"),
            ("billing", later, {}, "yield"),
            ("billing", print, {"timeout_ms": 0}, "1 or more"),
            ("billing", print, {"options": dict}, "frozen dataclass"),
            ("billing", print, {"options": Unreadable}, "which JSON cannot fill"),
        ):
            with pytest.raises(ConfigurationError, match=remedy):
                handler(name, **options)(function)  # type: ignore[arg-type, type-var]
        assert handler_names() == []

    def test_handlers_are_registered_from_many_threads(self) -> None:
        def register(number: int) -> None:
            handler(f"handler-{number}")(lambda record, context: None)

        threads = [threading.Thread(target=register, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(handler_names()) == 20


@dataclass(frozen=True, slots=True)
class Unreadable:
    amounts: list[int]


class TestTyped:
    @staticmethod
    def order() -> Struct:
        order = Struct()
        order.update({"apples": 2})
        return order

    def test_a_typed_handler_gets_the_message_and_the_record_beside_it(self) -> None:
        seen = []

        @handler("orders", message=Struct)
        def take(order: Struct, context: DeliveryContext) -> None:
            seen.append((order["apples"], context.record.offset))

        deliver(bind("orders"), message(self.order().SerializeToString()))
        assert seen == [(2, 7)]

    def test_an_async_one_is_awaited(self) -> None:
        seen = []

        @handler("orders", message=Struct)
        async def take(order: Struct, context: DeliveryContext) -> None:
            await asyncio.sleep(0)
            seen.append(order["apples"])

        bound = bind("orders")
        assert inspect.iscoroutinefunction(bound)
        deliver(bound, message(self.order().SerializeToString()))
        assert seen == [2]

    @pytest.mark.parametrize("kind", ["def", "async def"])
    def test_what_cannot_be_decoded_is_not_tried_again(self, kind: str) -> None:
        def take(order: Struct, context: DeliveryContext) -> None: ...

        async def take_later(order: Struct, context: DeliveryContext) -> None: ...

        handler("orders", message=Struct)(take if kind == "def" else take_later)
        with pytest.raises(UndecodableMessage, match=r"google\.protobuf.Struct, in 4 bytes"):
            deliver(bind("orders"), message(b"\xff\xff\xff\xff"))
        tombstone = QueueMessage.tombstone(b"key")
        with pytest.raises(UndecodableMessage, match="tombstone"):
            deliver(bind("orders"), message(tombstone.data, tombstone.headers))


@dataclass(frozen=True, slots=True)
class MailOptions:
    to: str
    copies: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    limit: int = 10
    ratio: float = 0.5
    is_urgent: bool = False
    style: Literal["plain", "html"] = "plain"
    password: str = field(default="", metadata=SECRET_OPTION)

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConfigurationError(f"limit is {self.limit}; use 1 or more")

    def check_queue(self, queue: str) -> None:
        if queue == "Main":
            raise ConfigurationError("queue Main is not for mails; name another")


class TestOptions:
    @pytest.fixture(autouse=True)
    def mails(self) -> None:
        @handler("mail", options=MailOptions)
        class Mail:
            def __init__(self, options: MailOptions) -> None:
                self.options = options

            def __call__(self, record: Record, context: DeliveryContext) -> None: ...

    def test_the_handler_is_made_with_what_the_queue_says(self) -> None:
        bound: Any = bind("mail", {"to": "a@example.org", "copies": ["b", "c"], "headers": {"x": "y"}, "ratio": 1})
        assert bound.options == MailOptions("a@example.org", ("b", "c"), {"x": "y"}, ratio=1)
        deliver(bound, message())

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({}, "the option 'to' is missing"),
            ({"to": 7}, "the option 'to' is 7; give text"),
            ({"to": "a", "limt": 1}, "there is no option 'limt'; did you mean 'limit'?"),
            ({"to": "a", "zzz": 1}, "there are: to, copies, headers"),
            ({"to": "a", "limit": True}, "the option 'limit' is True; give a whole number"),
            ({"to": "a", "limit": 1.5}, "give a whole number"),
            ({"to": "a", "ratio": "x"}, "give a number"),
            ({"to": "a", "is_urgent": 1}, "give true or false"),
            ({"to": "a", "style": "bold"}, "give one of plain, html"),
            ({"to": "a", "copies": "b"}, "give a list of texts"),
            ({"to": "a", "copies": [1]}, "give a list of texts"),
            ({"to": "a", "headers": {"x": 1}}, "give an object of texts"),
            ({"to": "a", "limit": 0}, "limit is 0; use 1 or more"),
        ],
    )
    def test_what_is_wrong_is_said_when_it_is_configured(self, options: dict[str, object], problem: str) -> None:
        with pytest.raises(ConfigurationError, match="handler 'mail': ") as refused:
            check_handler("mail", options)
        assert problem in refused.value.message

    def test_everything_wrong_is_said_at_once(self) -> None:
        with pytest.raises(ConfigurationError, match=r"'limt'.*'to' is missing.*'ratio' is 'x'"):
            check_handler("mail", {"limt": 1, "ratio": "x"})

    def test_options_may_not_suit_a_queue(self) -> None:
        check_handler("mail", {"to": "a"}, "Mails")
        with pytest.raises(ConfigurationError, match="not for mails"):
            check_handler("mail", {"to": "a"}, "Main")

    def test_a_handler_without_options_takes_none(self) -> None:
        handler("billing")(lambda record, context: None)
        check_handler("billing", {})
        with pytest.raises(ConfigurationError, match="there is no option 'to'; there are: none"):
            check_handler("billing", {"to": "a"})

    def test_secrets_are_shown_to_nobody(self) -> None:
        values = {"to": "a", "password": "deep secret"}
        shown = hide_secrets(MailOptions, values)
        assert shown == {"to": "a", "password": HIDDEN}
        assert keep_secrets(MailOptions, shown, values) == values
        assert keep_secrets(MailOptions, {"to": "a", "password": "new"}, values)["password"] == "new"
        assert hide_secrets(MailOptions, {"to": "a", "password": ""})["password"] == ""
        with pytest.raises(ConfigurationError) as refused:
            read_options(MailOptions, {"to": "a", "password": ["deep secret"]})
        assert "deep secret" not in refused.value.message

    @pytest.mark.parametrize(
        "masked", [{"password": HIDDEN}, {"to": HIDDEN}, {"headers": {"x": HIDDEN}}, {"copies": ["b", HIDDEN]}]
    )
    def test_what_stands_for_a_hidden_value_is_never_one(self, masked: dict[str, object]) -> None:
        [name] = masked
        with pytest.raises(ConfigurationError, match=f"'{name}' came back hidden.*enter the value itself"):
            keep_secrets(MailOptions, {"to": "a", **masked}, {})


SHOP = """
from queuecore.consuming.handlers import handler

@handler("billing", timeout_ms=70)
def bill(record, context): ...

def ship(record, context): ...
"""


class TestEntryPoints:
    """Of packages as pip leaves them: a module, and a folder that describes the distribution."""

    @staticmethod
    def install(folder: Path, name: str, source: str, *points: str) -> None:
        (folder / f"{name}.py").write_text(source)
        described = folder / f"{name}-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (described / "entry_points.txt").write_text("[switchyard.handlers]\n" + "\n".join(points) + "\n")

    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(tmp_path)

    def test_they_are_found_and_loaded_when_asked_for(self, tmp_path: Path) -> None:
        self.install(tmp_path, "shop_a", SHOP, "billing = shop_a:bill", "shipping = shop_a:ship")
        assert handler_names() == ["billing", "shipping"]
        assert find_handler("shipping").place == "shop_a:ship"
        assert find_handler("billing").timeout_ms == 70

    def test_what_the_decorator_says_holds_under_another_name_too(self, tmp_path: Path) -> None:
        self.install(tmp_path, "shop_b", SHOP, "invoices = shop_b:bill")
        assert find_handler("invoices").timeout_ms == 70

    def test_a_broken_one_is_named_and_hides_no_other(self, tmp_path: Path) -> None:
        self.install(tmp_path, "shop_c", SHOP, "shipping = shop_c:ship")
        self.install(tmp_path, "broken_c", "import nothing_of_that_name", "broken = broken_c:run")
        self.install(tmp_path, "twice_c", SHOP.replace('"billing"', '"a b"'), "odd = twice_c:bill")
        assert handler_names() == ["broken", "odd", "shipping"]
        find_handler("shipping")
        with pytest.raises(UnknownHandler, match=r"'broken' \(broken_c:run of broken_c\) cannot be loaded.*nothing_of"):
            find_handler("broken")
        with pytest.raises(UnknownHandler, match=r"'odd'.*cannot be loaded: a handler cannot be called 'a b'"):
            find_handler("odd")

    def test_one_that_would_end_the_process_is_broken_as_others_are(self, tmp_path: Path) -> None:
        self.install(tmp_path, "exits_c", "raise SystemExit('no licence')", "exiting = exits_c:run")
        with pytest.raises(UnknownHandler, match=r"'exiting'.*cannot be loaded: SystemExit: no licence"):
            find_handler("exiting")

    def test_two_packages_cannot_have_one_name(self, tmp_path: Path) -> None:
        for name in ("shop_d", "shop_e"):
            self.install(tmp_path, name, "def ship(record, context): ...", f"ship = {name}:ship")
        with pytest.raises(ConfigurationError) as refused:
            find_handler("ship")
        assert "shop_d:ship" in refused.value.message
        assert "shop_e:ship" in refused.value.message

    def test_a_package_cannot_take_a_registered_name(self, tmp_path: Path) -> None:
        handler("ship")(deliver)
        self.install(tmp_path, "shop_f", SHOP, "ship = shop_f:ship")
        with pytest.raises(ConfigurationError, match=f"{__name__}:deliver and shop_f:ship"):
            find_handler("ship")
