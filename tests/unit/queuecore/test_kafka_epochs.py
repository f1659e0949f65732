"""Epochs in the metadata of a commit: ours are read back, and nothing else is taken for one."""

import pytest

from queuecore.providers.kafka.epochs import parse_epoch, to_commit, to_metadata
from queuecore.topics import ProviderPartition

PLACE = ProviderPartition("topic", 0)


@pytest.mark.parametrize("epoch", [0, 17, 2**63 - 1])
def test_an_epoch_is_read_back(epoch: int) -> None:
    assert parse_epoch(to_metadata(epoch)) == epoch
    assert parse_epoch(to_metadata(epoch) + "\0") == epoch, "as librdkafka stores it"


@pytest.mark.parametrize(
    "metadata", [None, "", "\0", "17", "epoch", "epoch=", "epoch=-1", "epoch=1x", "epoch=²", "e=1"]
)
def test_other_metadata_is_no_epoch(metadata: str | None) -> None:
    assert parse_epoch(metadata) is None


def test_metadata_that_goes_on_and_on_is_none_either() -> None:
    assert parse_epoch("epoch=" + "9" * 4_000) is None


def test_only_what_has_an_epoch_is_committed_with_metadata() -> None:
    assert to_commit(PLACE, 5, {PLACE: 3}).metadata == "epoch=3"
    assert to_commit(PLACE, 5, {}).metadata is None
