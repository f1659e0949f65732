"""The dashboard for Grafana asks for metrics that there are, by labels that they have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from queueapi.alerting.defaults import DEFAULT_RULES
from queueapi.choices import AlertMetric
from queuecore.metrics.names import METRICS
from queuecore.requests.prometheus import RequestCollector

DASHBOARD = json.loads((Path(__file__).parents[2] / "docs/grafana/switchyard.json").read_text())
SERIES = {series: metric for metric in METRICS for series in metric.series}
# What the seeds want to be seen.
WANTED = {
    "queue_producer_sent_total",
    "queue_consumer_polled_total",
    "queue_consumer_lag",
    "queue_processing_time_seconds_bucket",
    "queue_errors_total",
    "pending_requests_count",
    "request_timeout_count_total",
    "response_lag_seconds_bucket",
    "pending_requests_memory_bytes",
}
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
    *(one["definition"] for one in DASHBOARD["templating"]["list"] if "definition" in one),
]


def series_of(query: str) -> set[str]:
    """All names in it that are no functions, no words of the language, and no labels."""
    bare = re.sub(r"\{[^}]*\}|\bby \([^)]*\)|\[\w+\]", " ", query)
    bare = re.sub(r"label_values\((\w+)[^)]*\)", r"\1", bare)
    return set(re.findall(r"\b[a-z_]{3,}\b(?!\s*\()", bare))


def labels_of(query: str) -> set[str]:
    matched = re.findall(r"(\w+)(?:=~|!~|!=|=)\"", query)
    grouped = re.findall(r"\bby \(([^)]*)\)", query)
    listed = re.findall(r"label_values\(.*, (\w+)\)", query)
    return {*matched, *listed, *(label for labels in grouped for label in labels.split(", "))}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_and_labels_that_there_are(query) -> None:
    named = series_of(query)
    assert named
    assert named <= SERIES.keys()
    assert labels_of(query) <= {"le", *(label for name in named for label in SERIES[name].labels)}


def test_all_that_the_seeds_want_is_shown() -> None:
    assert {name for query in QUERIES for name in series_of(query)} >= WANTED


def test_names_are_as_prometheus_wants_them() -> None:
    assert len(SERIES) == sum(len(metric.series) for metric in METRICS), "no two have the same"
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", metric.name) for metric in METRICS)
    assert not any(metric.name.endswith(("_total", "_bucket", "_sum")) for metric in METRICS)
    assert all(metric.help.endswith(".") for metric in METRICS)


def test_requests_are_shown_by_these_names() -> None:
    told = {metric.name: (metric.help, metric.kind) for metric in METRICS}
    shown = {family.name: (family.documentation, family.type) for family in RequestCollector([]).collect()}
    assert len(shown) == 5
    assert shown.items() <= told.items()


def test_panels_say_what_they_are_and_stand_beside_each_other() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        cells = _cells(panel["gridPos"])
        assert panel["title"]
        assert not taken & cells, panel["title"]
        taken |= cells


# By a panel's title the metric whose rule it draws, and how many of the rule's units one of its own is.
DRAWN = {
    "Pipeline's age": (AlertMetric.PIPELINE_LATE, 1),
    "The pipeline": (AlertMetric.PIPELINE_LATE, 1),
    "Furthest behind": (AlertMetric.LAG_SECONDS, 1),
    "Seconds behind, by queue": (AlertMetric.LAG_SECONDS, 1),
    "Messages behind, by queue": (AlertMetric.LAG_MESSAGES, 1),
    "Errors, of what was polled": (AlertMetric.ERROR_RATE, 100),
    "Pending requests": (AlertMetric.PENDING_REQUESTS, 1),
    "Pending": (AlertMetric.PENDING_REQUESTS, 1),
    "Timeouts a minute": (AlertMetric.REQUEST_TIMEOUTS, 1),
    "From request to answer": (AlertMetric.RESPONSE_LAG, 1_000),
}


@pytest.mark.parametrize("title", DRAWN)
def test_a_panel_is_red_where_the_rule_that_comes_with_the_system_fires(title) -> None:
    metric, units = DRAWN[title]
    [panel] = [panel for panel in PANELS if panel["title"] == title]
    [rule] = [rule for rule in DEFAULT_RULES if rule["metric"] == metric]
    last = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]
    assert (last["color"], last["value"] * units) == ("red", rule["threshold"])


def _cells(place: dict[str, Any]) -> set[tuple[int, int]]:
    across, down = (range(place[at], place[at] + place[size]) for at, size in (("x", "w"), ("y", "h")))
    return {(x, y) for x in across for y in down}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_among_the_figures_that_are_told_of(metric) -> None:
    told = (Path(__file__).parents[2] / "docs/howto/figures.md").read_text()
    shown = metric.name if metric.kind == "histogram" else metric.series[0]
    assert f"`{shown}`" in told
