"""What a rebalance would do, before it is done."""

from collections.abc import Mapping

import pytest

from queuecore.cluster.resizing import queue_key
from queuecore.cluster.services import ClusterPartition, ServiceInfo
from queuecore.cluster.view import ClusterView, Ownership
from queuecore.cluster.what_if import ASSUMED_PAUSE_MS, WhatIf, what_if
from queuecore.errors import ConfigurationError, UnknownQueue, UnknownService
from queuecore.topics import ServiceType
from tests.unit.queuecore.cluster.assignment_kit import CORE, plain_services, queue


def view_of(
    services: list[ServiceInfo],
    partitions: list[ClusterPartition],
    owners: Mapping[str, str | None] | None = None,
    draining: tuple[str, ...] = (),
) -> ClusterView:
    """Partitions that nobody is named for go round the services."""
    ids = [service.service_id for service in services] or [None]
    found = {one.name: ids[at % len(ids)] for at, one in enumerate(partitions)} | dict(owners or {})
    return ClusterView(
        7,
        {service.service_id: service for service in services},
        {one.name: one for one in partitions},
        {name: Ownership(owner, 1 if owner else 0, owner) for name, owner in found.items()},
        frozenset(draining),
    )


def asked(view: ClusterView, **options) -> WhatIf:
    return what_if(view.spread, assignor="sticky", **options)


def test_in_a_cluster_that_is_even_nothing_would_move() -> None:
    seen = asked(view_of(plain_services(2), queue("q", 4)))
    assert (seen.plan.moves, seen.placements, seen.warnings) == ((), 0, ())
    assert seen.plan.before == seen.plan.after


def test_a_service_that_leaves_gives_all_it_has_to_the_others() -> None:
    view = view_of(plain_services(3), queue("q", 6))
    seen = asked(view, leaving=["s1"])
    assert {(move.source, move.partition) for move in seen.plan.moves} == {("s1", "q.1"), ("s1", "q.4")}
    assert {name: load.count for name, load in seen.plan.before.services.items()} == {"s0": 2, "s1": 2, "s2": 2}
    assert {name: load.count for name, load in seen.plan.after.services.items()} == {"s0": 3, "s2": 3}
    assert seen.warnings == ()


def test_services_that_join_take_their_share_by_weight() -> None:
    view = view_of(plain_services(1), queue("q", 6))
    seen = asked(view, joining=[ServiceInfo("new", weight=2.0)])
    assert len(seen.plan.moves) == 4
    assert seen.plan.after.services["new"].count == 4
    assert "new" not in seen.plan.before.services


def test_one_that_leaves_and_joins_is_the_same_with_another_weight() -> None:
    view = view_of(plain_services(2), queue("q", 6))
    seen = asked(view, leaving=["s1"], joining=[ServiceInfo("s1", weight=2.0)])
    assert {move.target for move in seen.plan.moves} == {"s1"}
    assert seen.plan.after.services["s1"].count == 4


def test_partitions_without_an_owner_are_placements_and_no_moves() -> None:
    view = view_of(plain_services(2), queue("q", 4), {"q.0": None, "q.1": None})
    seen = asked(view)
    assert (seen.plan.moves, seen.placements) == ((), 2)


def test_a_queue_of_another_size_has_new_partitions() -> None:
    view = view_of(plain_services(2), [*queue("q", 4), *queue("other", 2)])
    more = asked(view, partitions={"q": 6})
    assert (more.plan.moves, more.placements) == ((), 6)
    assert sorted(more.plan.assignment) == ["other.0", "other.1", *(f"q.{number}" for number in range(4, 10))]
    fewer = asked(view, partitions={"q": 1})
    assert sorted(fewer.plan.assignment) == ["other.0", "other.1", "q.4"]
    for seen, count in ((more, 6), (fewer, 1)):
        assert f"q would have {count} new partitions instead of its 4" in seen.warnings[0]
    assert asked(view, partitions={"q": 4}).warnings == ()


def test_partitions_inside_one_topic_keep_their_names() -> None:
    inside = [ClusterPartition(f"q[{number}]", queue="q", number=number) for number in range(2)]
    assert queue_key(inside[1]) == "q"
    seen = asked(view_of(plain_services(1), inside), partitions={"q": 3})
    assert sorted(seen.plan.assignment) == ["q[2]", "q[3]", "q[4]"]


def test_a_queue_whose_name_begins_like_anothers_is_left_alone() -> None:
    view = view_of(plain_services(1), [*queue("q", 2), *queue("q.x", 2)])
    assert sorted(asked(view, partitions={"q": 1}).plan.assignment) == ["q.2", "q.x.0", "q.x.1"]


def test_the_pause_is_what_was_seen_or_else_an_assumption() -> None:
    view = view_of(plain_services(1), queue("q", 1))
    seen, assumed = asked(view, pause_ms=0), asked(view)
    assert (seen.pause_ms, seen.is_assumed) == (0, False)
    assert (assumed.pause_ms, assumed.is_assumed) == (ASSUMED_PAUSE_MS, True)


def test_services_that_would_be_left_with_nothing_are_named() -> None:
    view = view_of(plain_services(1), queue("q", 2))
    [warning] = asked(view, joining=plain_services(2, "new")).warnings
    assert warning == "there are more services than partitions, so 1 service is left without any: new1"


def test_services_that_nothing_fits_are_told_apart() -> None:
    view = view_of(plain_services(1), queue("q", 2))
    [warning] = asked(view, joining=[ServiceInfo("core", (CORE,))]).warnings
    assert warning.startswith("1 service is left without any partition, as none fits")
    assert warning.endswith(": core")


def test_partitions_that_nobody_may_have_are_told_with_the_reason() -> None:
    labelled = [ClusterPartition(f"gpu.{number}", queue="gpu", number=number, label="gpu") for number in range(2)]
    seen = asked(view_of(plain_services(1), [*queue("q", 1), *labelled], {"gpu.0": None, "gpu.1": None}))
    [warning] = seen.warnings
    assert warning.startswith("2 partitions are consumed by nobody: no service of type TB_RULE_ENGINE has the label")
    assert sorted(seen.plan.unassigned) == ["gpu.0", "gpu.1"]


def test_nobody_left_is_said_once() -> None:
    seen = asked(view_of(plain_services(2), queue("q", 2)), leaving=["s0", "s1"])
    assert seen.warnings == ("no service is left to consume anything: messages wait unread until one is started",)


def test_a_draining_service_has_a_share_of_nothing_and_is_told() -> None:
    view = view_of(plain_services(2), queue("q", 4), draining=("s1",))
    seen = asked(view)
    assert seen.plan.before.services["s1"].share == 0
    assert seen.plan.before.largest_deviation == 2
    assert {move.source for move in seen.plan.moves} == {"s1"}
    assert seen.warnings == ("1 service is draining already, and left out: s1",)
    assert asked(view, leaving=["s1"]).warnings == ()


def test_an_empty_cluster() -> None:
    seen = asked(view_of([], []))
    assert seen.plan.assignment == {}
    assert len(seen.warnings) == 1


@pytest.mark.parametrize("service_type", list(ServiceType))
def test_a_service_of_any_type_can_be_asked_about(service_type) -> None:
    view = view_of([], queue("q", 2, kind=service_type))
    assert asked(view, joining=[ServiceInfo("a", (service_type,))]).placements == 2


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"leaving": ["s9"]}, UnknownService, "there is no service 's9'"),
        ({"joining": [ServiceInfo("s0")]}, ConfigurationError, "'s0' is there already; choose another id"),
        ({"partitions": {"nowhere": 3}}, UnknownQueue, "'nowhere'"),
        ({"partitions": {"q": 0}}, ConfigurationError, "cannot have 0 partitions; use 1 to 1000"),
        ({"partitions": {"q": 1001}}, ConfigurationError, "use 1 to 1000"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, error, told) -> None:
    with pytest.raises(error, match=told):
        asked(view_of(plain_services(1), queue("q", 2)), **options)
