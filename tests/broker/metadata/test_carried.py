"""Carried records: the latest state of known record types, every record of unknown ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.records import MetadataRecord, UnknownRecord

ImageOf = Callable[[Sequence[MetadataRecord]], MetadataImage]

BROKER_1 = (1).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        ([UnknownRecord(20, 0, b"\0")], []),
        ([UnknownRecord(0, 1, BROKER_1 + b"a"), UnknownRecord(0, 3, BROKER_1 + b"b")], [1]),
        ([UnknownRecord(0, 1, BROKER_1), UnknownRecord(17, 0, BROKER_1), UnknownRecord(8, 0, BROKER_1)], [0, 1, 2]),
        ([UnknownRecord(0, 1, BROKER_1), UnknownRecord(17, 0, BROKER_1), UnknownRecord(0, 1, BROKER_1)], [2]),
        ([UnknownRecord(0, 1, BROKER_1), UnknownRecord(1, 0, BROKER_1)], []),
        ([UnknownRecord(21, 0, b"\1"), UnknownRecord(21, 0, b"\3")], [1]),
        ([UnknownRecord(27, 0, BROKER_1), UnknownRecord(27, 0, BROKER_1)], [1]),
        ([UnknownRecord(200, 0, b"a"), UnknownRecord(200, 0, b"a")], [0, 1]),
        ([UnknownRecord(27, 1, BROKER_1), UnknownRecord(27, 1, BROKER_1)], [0, 1]),
        ([UnknownRecord(27, 0, b"cut"), UnknownRecord(27, 0, b"cut")], [0, 1]),
    ],
)
def test_the_latest_state_of_each_carried_object_is_kept(
    image_of: ImageOf, records: list[MetadataRecord], kept: list[int]
) -> None:
    assert list(image_of(records).carried) == [records[index] for index in kept]
