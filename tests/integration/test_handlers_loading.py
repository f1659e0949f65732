"""Which handlers an installation has: web and workers load the same, and what is wrong with one is told."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.core import checks as django_checks

from queueapi import handlers
from queueapi.checks import check_handlers
from queueapi.config import Config
from queueapi.handlers import handler_problems, load_handlers
from queuecore.consuming.handlers import check_handler, handler_names
from queuecore.errors import ConfigurationError

MODULE = """
from queuecore import handler

@handler("{name}")
def handle(record, context): ...
"""


@pytest.fixture(autouse=True)
def _no_problems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(handlers, "_problems", {})
    monkeypatch.syspath_prepend(tmp_path)


def test_those_that_ship_are_there() -> None:
    assert {"log", "forward", "webhook", "demo.core", "demo.rule_engine"} <= set(handler_names())


def test_the_settings_name_more(tmp_path: Path, settings) -> None:
    (tmp_path / "shop_of_tests.py").write_text(MODULE.format(name="test.shop"))
    settings.SWITCHYARD = replace(settings.SWITCHYARD, handlers=("shop_of_tests",))
    load_handlers()
    check_handler("test.shop")
    assert handler_problems() == {}
    assert check_handlers(None) == []


@pytest.mark.parametrize("kind", ["RuntimeError", "SystemExit"])
def test_a_module_that_cannot_be_imported_is_named_and_the_others_are_there(
    tmp_path: Path, settings, caplog, kind
) -> None:
    (tmp_path / "broken_of_tests.py").write_text(f"raise {kind}('no price list')")
    (tmp_path / "other_of_tests.py").write_text(MODULE.format(name="test.other"))
    settings.SWITCHYARD = replace(settings.SWITCHYARD, handlers=("broken_of_tests", "other_of_tests"))
    load_handlers()
    check_handler("test.other")
    assert f"the handlers of broken_of_tests cannot be loaded: {kind}: no price list" in caplog.text
    (problem,) = check_handlers(None)
    assert isinstance(problem, django_checks.Error)
    assert problem.id == "queueapi.E001"
    assert "broken_of_tests" in problem.msg


def test_a_name_that_no_module_can_have_is_refused_at_the_start() -> None:
    Config(handlers=("shop.handlers",)).check()
    with pytest.raises(ConfigurationError, match=r"SWITCHYARD_HANDLERS: 'shop/handlers\.py' is no module's name"):
        Config(handlers=("shop/handlers.py",)).check()
