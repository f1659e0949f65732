"""How `manage.py log` shows what an inspection found."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from queueapi.management.tables import count, instant, table
from queuecore.providers.log.reports import PageReport, PartitionReport, SegmentReport
from queuecore.providers.log.salvage import Damage


def sections(report: PartitionReport) -> Iterator[str]:
    """Everything, as tables with a title each."""
    yield f"{_place(report)}\n{_page(report.page)}"
    yield "Segments\n" + table(
        ("base", "end", "bytes", "batches", "records", "first", "last", "compression", "index"),
        (
            (
                one.base, one.end_offset, count(one.size_bytes), count(one.batches), count(one.records),
                instant(one.first_ms), instant(one.last_ms), ",".join(one.compression) or None, _index(one),
            )
            for one in report.segments
        ),
    )  # fmt: skip
    if report.producers:
        rows = [(one.producer, one.epoch, one.last_sequence, one.offset) for one in report.producers.values()]
        yield "Producers, and the last batch of each\n" + table(("id", "epoch", "last sequence", "offset"), rows)
    if report.transactions:
        transactions = report.transactions.values()
        yield "Transactions\n" + table(
            ("number", "outcome", "first offset", "batches", "records"),
            (
                (one.number, one.outcome, one.first_offset, count(one.batches), count(one.records))
                for one in transactions
            ),
        )
    if report.remarks:
        yield "Remarks\n" + "\n".join(report.remarks)
    yield "Damage\n" + ("\n".join(map(describe, report.damage)) or "none")


def summary(report: PartitionReport) -> str:
    """One line."""
    segments = report.segments
    state = f"damaged in {len(report.damage)} place(s)" if report.damage else "sound"
    return (
        f"{_place(report)}: {len(segments):,} segments, {sum(one.batches for one in segments):,} batches, "
        f"{sum(one.records for one in segments):,} records, {sum(one.size_bytes for one in segments):,} bytes: {state}"
    )


def describe(damage: Damage) -> str:
    length = f" ({damage.length:,} bytes)" if damage.length else ""
    return f"{damage.file}: position {damage.position}{length}: {damage.problem}"


def as_json(report: PartitionReport) -> dict[str, Any]:
    return {
        **asdict(report),
        "page": _page_as_json(report.page),
        "producers": [asdict(one) for one in report.producers.values()],
        "transactions": [asdict(one) for one in report.transactions.values()],
        "damage": [one._asdict() for one in report.damage],
    }


def _place(report: PartitionReport) -> str:
    return f"{report.topic}[{report.partition}]"


def _page_as_json(page: PageReport | None) -> dict[str, Any] | None:
    if page is None:
        return None
    return {**asdict(page), "notes": page.notes._asdict() if page.notes is not None else None}


def _page(page: PageReport | None) -> str:
    if page is None:
        return "no page"
    notes = "notes not valid"
    if page.notes is not None:
        notes = f"notes valid: segment {page.notes.base} is whole up to position {page.notes.size}"
    deleted = "; topic deleted" if page.is_removed else ""
    return f"end {page.end}, beginning {page.beginning}, on disk up to {page.synced}; {notes}{deleted}"


def _index(segment: SegmentReport) -> str:
    """How many entries, and which of them do not agree with the segment."""
    if not segment.index_disagreeing:
        return f"{segment.index_entries} agree"
    wrong = ", ".join(map(str, segment.index_disagreeing[:5])) + (", …" if len(segment.index_disagreeing) > 5 else "")
    return f"{len(segment.index_disagreeing)} of {segment.index_entries} disagree: {wrong}"
