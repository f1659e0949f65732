"""Dependencies point one way: queuecore <- queueapi <- console, workers. Read from the imports, not from run time."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("queuecore", "queueapi", "console", "workers")

_FRAMEWORKS = {"django", "rest_framework", "django_filters", "django_htmx", "drf_spectacular", "celery", "kombu"}
FORBIDDEN: dict[str, set[str]] = {
    "queuecore": {*_FRAMEWORKS, "pyspark", "queueapi", "console", "workers"},
    "queueapi": {"console", "workers"},
    "console": {"workers"},
    "workers": {"console"},
}
ONLY_UNDER = {
    "confluent_kafka": "queuecore/providers/kafka",
    "kafka": "queuecore/providers/kafka",
    "pyspark": "workers/spark",
}


def imports_of(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything a module of this package imports, wherever in the module it does so."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = _absolute(package, level, module)
                yield from ((node.lineno, f"{base}.{alias.name}" if base else alias.name) for alias in names)
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(target)), *_]
            ):
                if name in {"import_module", "__import__"}:
                    yield node.lineno, target


def _absolute(package: str, level: int, module: str | None) -> str:
    if not level:
        return module or ""
    parents = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*parents, *([module] if module else [])])


def breaches_in(path: Path, source: str) -> list[str]:
    """What in this source, at this path from the root, the rule forbids."""
    found = []
    for line, name in imports_of(source, ".".join(path.parent.parts)):
        top = name.split(".")[0]
        home = ONLY_UNDER.get(top)
        if top in FORBIDDEN.get(path.parts[0], set()) or (home and not path.is_relative_to(home)):
            found.append(f"{path}:{line} imports {name}")
    return found


def breaches(root: Path) -> list[str]:
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return [breach for path in paths for breach in breaches_in(path.relative_to(root), path.read_text())]


def test_dependencies_point_one_way() -> None:
    assert breaches(ROOT) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("queuecore/a.py", "import django"),
        ("queuecore/a.py", "import os, django.db as db"),
        ("queuecore/a.py", "from celery import shared_task"),
        ("queuecore/a.py", "import queueapi.models"),
        ("queuecore/a.py", "def late():\n    from console import settings"),
        ("queuecore/a.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workers"),
        ("queuecore/a.py", "try:\n    import django\nexcept ImportError:\n    pass"),
        ("queuecore/a.py", "import importlib\nimportlib.import_module('queueapi.models')"),
        ("queuecore/a.py", "__import__('console')"),
        ("queuecore/deep/er/a.py", "from ....queueapi import models"),
        ("queuecore/a.py", "from .. import console"),
        ("queueapi/a.py", "from console.views import page"),
        ("queueapi/a.py", "from workers import app"),
        ("console/a.py", "import workers.app"),
        ("workers/a.py", "from console import urls"),
        ("queueapi/a.py", "import confluent_kafka"),
        ("queuecore/providers/log/a.py", "from confluent_kafka import Producer"),
        ("queueapi/a.py", "from kafka.admin import KafkaAdminClient"),
        ("queuecore/providers/kafka_like/a.py", "import confluent_kafka.admin"),
        ("workers/a.py", "import pyspark"),
        ("queueapi/a.py", "from pyspark.sql import SparkSession"),
    ],
)
def test_a_breach_is_found(path: str, source: str) -> None:
    assert len(breaches_in(Path(path), source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("queuecore/a.py", "import queuecore.errors, json"),
        ("queuecore/a.py", "from . import errors\nfrom .errors import QueueError"),
        ("queuecore/providers/log/a.py", "from ...workers import x"),
        ("queuecore/a.py", "from queuecore.console import x"),
        ("queuecore/a.py", "SETTINGS = 'console.settings'\nopen('workers')"),
        ("queuecore/a.py", "# import django"),
        ("queuecore/providers/kafka/a.py", "from confluent_kafka import Producer"),
        ("queueapi/a.py", "import django, celery, queuecore"),
        ("console/a.py", "import os\nos.environ['DJANGO_SETTINGS_MODULE'] = 'console.settings'\nimport queueapi"),
        ("workers/spark/jobs/a.py", "import pyspark"),
        ("workers/a.py", "from . import spark\nfrom workers.spark import jobs\nimport queueapi, queuecore"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, source: str) -> None:
    assert breaches_in(Path(path), source) == []


def test_the_whole_tree_is_read_and_missing_packages_are_no_breach(tmp_path: Path) -> None:
    assert breaches(tmp_path) == []
    folder = tmp_path / "queuecore" / "deep"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "module.py").write_text("x = 1\nimport queueapi\n")
    assert breaches(tmp_path) == ["queuecore/deep/module.py:2 imports queueapi"]
