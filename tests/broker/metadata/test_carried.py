"""Carried records: the latest state of known record types, every record of unknown ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.records import MetadataRecord, UnknownRecord

ImageOf = Callable[[Sequence[MetadataRecord]], MetadataImage]

ZEROS = bytes(16)
BROKER_1 = (1).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        ([UnknownRecord(20, 0, b"\0")], []),
        ([UnknownRecord(0, 1, BROKER_1 + b"a"), UnknownRecord(0, 3, BROKER_1 + b"b")], [1]),
        ([UnknownRecord(0, 1, BROKER_1), UnknownRecord(17, 0, BROKER_1), UnknownRecord(8, 0, BROKER_1)], [0, 1, 2]),
        ([UnknownRecord(0, 1, BROKER_1), UnknownRecord(17, 0, BROKER_1), UnknownRecord(0, 1, BROKER_1)], [2]),
        ([UnknownRecord(0, 1, BROKER_1), UnknownRecord(1, 0, BROKER_1)], []),
        (
            [UnknownRecord(18, 0, bytes(16)), UnknownRecord(18, 0, bytes([1] * 16)), UnknownRecord(19, 0, bytes(16))],
            [1],
        ),
        ([UnknownRecord(11, 0, b"\2u\1a"), UnknownRecord(11, 0, b"\2u\2b"), UnknownRecord(22, 0, b"\2u\1")], [1]),
        ([UnknownRecord(10, 0, b"\2o\2r\1" + bytes(24) + b"\2t"), UnknownRecord(26, 0, b"\2t\0")], []),
        ([UnknownRecord(21, 0, b"\1"), UnknownRecord(21, 0, b"\3")], [1]),
        ([UnknownRecord(27, 0, BROKER_1), UnknownRecord(27, 0, BROKER_1)], [1]),
        ([UnknownRecord(200, 0, b"a"), UnknownRecord(200, 0, b"a")], [0, 1]),
        ([UnknownRecord(18, 1, bytes(16)), UnknownRecord(19, 0, bytes(16))], [0, 1]),
        ([UnknownRecord(18, 0, b"torn"), UnknownRecord(18, 0, b"torn")], [0, 1]),
    ],
)
def test_the_latest_state_of_each_carried_object_is_kept(
    image_of: ImageOf, records: list[MetadataRecord], kept: list[int]
) -> None:
    assert list(image_of(records).carried) == [records[index] for index in kept]


def quota(value: bytes, *entity: tuple[bytes, bytes], remove: bool = False) -> UnknownRecord:
    def text(word: bytes) -> bytes:
        return bytes([len(word) + 1]) + word

    pairs = b"".join(text(kind) + text(name) + b"\0" for kind, name in entity)
    body = bytes([len(entity) + 1]) + pairs + text(b"producer_byte_rate") + value * 8 + bytes([remove]) + b"\0"
    return UnknownRecord(14, 0, body)


def test_a_quota_is_replaced_and_removed_whatever_the_order_of_its_entity(image_of: ImageOf) -> None:
    user, client = (b"user", b"u"), (b"client-id", b"c")
    first, second = quota(b"a", user, client), quota(b"b", client, user)
    other = quota(b"a", user)
    assert list(image_of([first, other, second]).carried) == [other, second]
    assert list(image_of([first, other, quota(b"\0", client, user, remove=True)]).carried) == [other]
