"""The library of declarations: classes, generated codecs, and what they say of invalid bytes and values."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Annotated

import pytest

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.wire.fields import since, tagged, until
from barnabas.protocol.wire.structures import Request, Struct, StructType
from barnabas.protocol.wire.types import (
    SHARED,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    SecretBytes,
    String,
    Uuid,
)

ID = bytes(range(16))


class Partition(Struct):
    index: Int32
    offset: Int64
    epoch: Int16 = since(2, default=-1)
    note: NullableString = None


class Topic(Struct):
    name: String = until(2, default="")
    topic_id: Uuid = since(3, default=bytes(16))
    partitions: Sequence[Partition]


class Ask(Request[Struct], flexible=2):
    group: String
    topics: Annotated[Sequence[Topic] | None, Nullable(1)]
    nodes: tuple[Int32, ...] = ()
    owner: Annotated[Partition | None, Nullable(2)] = since(2, default=None)
    is_dry: Bool = tagged(1, since=2, default=False)
    hosts: Sequence[String] = tagged(0, since=3, default=())


class Replicas(Struct, flexible=1):
    sets: Sequence[Annotated[tuple[Int32, ...], SHARED]]


class Answer(Struct):
    message: Message = None


class Flagged(Struct, flexible=0):
    is_dry: Bool
    hosts: Sequence[String]


class LongAnswer(Answer):
    code: Int16


def asked(version: int) -> Ask:
    """A request with everything that its version has."""
    partitions = [Partition(index=1, offset=1 << 40, epoch=-1 if version < 2 else 5, note=note) for note in ("ä", None)]
    topic = Topic(name="t", partitions=partitions) if version < 3 else Topic(topic_id=ID, partitions=partitions)
    ask = Ask(group="g", topics=[topic], nodes=(1, 2, 3))
    if version >= 2:
        ask.owner = partitions[0]
        ask.is_dry = True
    if version >= 3:
        ask.hosts = ["a", "b" * 200]
    return ask


@pytest.mark.parametrize("version", range(4))
def test_what_is_written_is_read_again(version: int) -> None:
    ask = asked(version)
    found = Ask.decode(version, memoryview(ask.encode(version)))
    assert found == ask
    assert found.version == version
    assert type(found.nodes) is tuple


def test_the_bytes_of_a_classic_and_of_a_flexible_version() -> None:
    ask = Ask(group="g", topics=[Topic(name="t", partitions=[Partition(index=1, offset=2)])], nodes=(7,))
    partition = bytes.fromhex("00000001 0000000000000002")
    classic = (
        b"\0\x01g" + b"\0\0\0\x01" + b"\0\x01t" + b"\0\0\0\x01" + partition + b"\xff\xff" + b"\0\0\0\x01\0\0\0\x07"
    )
    assert ask.encode(1) == classic
    ask.is_dry = True
    flexible = (
        b"\x02g" + b"\x02\x02t\x02" + partition + b"\xff\xff\0\0\0" + b"\x02\0\0\0\x07" + b"\xff" + b"\x01\x01\x01\x01"
    )
    assert ask.encode(2) == flexible


@pytest.mark.parametrize("version", range(4))
def test_a_message_that_is_cut_short_names_the_field(version: int) -> None:
    data = asked(version).encode(version)
    for size in range(len(data)):
        with pytest.raises(DecodeError, match=r"^(group|topics|nodes|owner|tagged fields|is_dry|hosts)"):
            Ask.decode(version, data[:size])


HOSTILE = [
    (1, b"", "group: the message ends within this field"),
    (1, b"\0\x05ab", "group: 5 bytes asked, but 2 bytes are left"),
    (1, b"\xff\xff", "group: a string that is null where it must not be"),
    (1, b"\0\x01\xff", "group: a string that is not UTF-8"),
    (0, b"\0\0\xff\xff\xff\xff", "topics: an array that is null where it must not be"),
    (1, b"\0\0\x7f\xff\xff\xff", "topics: an array of 2147483647 items, but 0 bytes are left"),
    (
        1,
        b"\0\0\0\0\0\x01\0\x01t\0\0\0\x01" + bytes(13),
        "topics: partitions: an array of 1 items, but 13 bytes are left",
    ),
    (1, b"\0\0\0\0\0\x01\0\x01t\0\0\0\x01" + bytes(12) + b"\0\x09", "topics: partitions: note: 9 bytes asked, but 0"),
    (2, b"\x01\xff\xff\xff\xff\x0f", "topics: an array of 4294967294 items"),
    (2, b"\x01\x01\x01\x01\0\0\0\x01\0\0", "owner: offset: the message ends within this field"),
    (2, b"\x01\x01\x01\xff\x02\x01\x01\x01\x01\x01\x01", "tagged fields: tag 1 does not come after tag 1"),
    (2, b"\x01\x01\x01\xff\x01\x63\x05", "tagged fields: 5 bytes asked, but 0 bytes are left"),
    (3, b"\x01\x01\x01\xff\x01\0\x01\x05", "hosts: an array of 4 items, but 0 bytes are left"),
]


@pytest.mark.parametrize(("version", "data", "sentence"), HOSTILE)
def test_invalid_bytes_are_a_decode_error_that_names_the_field(version: int, data: bytes, sentence: str) -> None:
    with pytest.raises(DecodeError) as caught:
        Ask.decode(version, data)
    assert str(caught.value).startswith(sentence)


def test_an_unknown_tagged_field_is_skipped() -> None:
    data = Ask(group="g", topics=[]).encode(2)
    assert Ask.decode(2, data[:-1] + b"\x02\x01\x01\x01\x63\x02ab") == Ask(group="g", topics=[], is_dry=True)


def test_bytes_after_the_last_field_are_ignored_unless_the_message_is_whole() -> None:
    data = asked(1).encode(1)
    assert Ask.decode(1, data + b"more") == asked(1)
    assert Ask.decode_whole(1, data) == asked(1)
    with pytest.raises(DecodeError, match="4 bytes are left over"):
        Ask.decode_whole(1, data + b"more")


def test_the_items_of_all_arrays_count_together_and_are_refused_before_they_are_read() -> None:
    data = Ask(group="", topics=[], nodes=tuple(range(60_000))).encode(1)
    with pytest.raises(DecodeError):  # the first use writes the decoder, whose memory is not what is measured
        Ask.decode(1, data)
    tracemalloc.start()
    with pytest.raises(DecodeError, match="nodes: more than 50000 array items in one message"):
        Ask.decode(1, data)
    assert tracemalloc.get_traced_memory()[1] < 1 << 16
    tracemalloc.stop()
    nested = asked(1).encode(1)
    assert Ask.decode(1, nested, 6) == asked(1)
    with pytest.raises(DecodeError, match="nodes: more than 5 array items"):
        Ask.decode(1, nested, 5)


def test_a_value_that_cannot_be_written_is_a_value_error_that_names_the_field() -> None:
    for ask, sentence in (
        (Ask(group=None, topics=[]), "group: "),  # type: ignore[arg-type]
        (
            Ask(group="", topics=[Topic(name="t", partitions=[Partition(index=1 << 40, offset=0)])]),
            "topics: partitions: ",
        ),
        (Ask(group="", topics=[3]), "topics: name: "),  # type: ignore[list-item]
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            ask.encode(1)
    with pytest.raises(ValueError, match="topics"):
        Ask(group="", topics=None).encode(0)


def test_a_long_message_is_cut_to_what_a_classic_string_holds() -> None:
    found = Answer.decode(0, Answer(message="ä€" * 40_000).encode(0))
    assert found.message == "ä€" * 4000


def test_shared_tuples_are_written_as_others_are() -> None:
    value = Replicas(sets=[(1, 2), (), (3,), (1, 2)])
    classic = bytes.fromhex("00000004 00000002 00000001 00000002 00000000 00000001 00000003 00000002 00000001 00000002")
    assert value.encode(0) == classic
    assert value.encode(1) == bytes.fromhex("05 03 00000001 00000002 01 02 00000003 03 00000001 00000002 00")
    for version in (0, 1):
        assert Replicas.decode_whole(version, value.encode(version)) == value


@pytest.mark.parametrize("version", range(4))
def test_a_tail_of_defaults_is_written_as_other_values_are(version: int) -> None:
    """Defaults are recognized as the same objects; values that only equal them give the same bytes."""
    usual = Ask(group="g", topics=[])
    equal = Ask(group="g", topics=[], nodes=tuple([0][1:]), is_dry=bool(0), hosts=[])
    assert usual.encode(version) == equal.encode(version)
    assert Ask.decode_whole(version, usual.encode(version)) == usual


def test_constructors_take_keywords_and_name_what_is_missing() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'topics'"):
        Ask(group="g")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'oops'"):
        Ask(group="g", topics=[], oops=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Ask(group="g", topics=[]).oops = 1  # type: ignore[attr-defined]


def test_values_are_equal_by_their_fields_and_show_them() -> None:
    partition = Partition(index=1, offset=2)
    assert partition == Partition(index=1, offset=2)
    assert partition != Partition(index=1, offset=3)
    assert partition.replaced(offset=3) == Partition(index=1, offset=3)
    assert repr(partition) == "Partition(index=1, offset=2, epoch=-1, note=None)"
    assert Ask(group="g", topics=[]) == Ask(group="g", topics=())
    assert Ask(group="g", topics=[]) != Ask(group="g", topics=None)
    assert Ask(group="g", topics=[], version=1) == Ask(group="g", topics=[], version=2)


def test_a_class_that_cannot_be_a_structure_says_why() -> None:
    with pytest.raises(TypeError, match="Bad has a field encode, which is a method of structures"):
        StructType("Bad", (Struct,), {"__annotations__": {"encode": "Int32"}, "__module__": __name__})
    with pytest.raises(TypeError, match="lacks `from __future__ import annotations`"):
        StructType("Bad", (Struct,), {"__annotations__": {"number": Int32}, "__module__": __name__})
    unknown = StructType("Bad", (Struct,), {"__annotations__": {"number": "Int33"}, "__module__": __name__})
    with pytest.raises(TypeError, match=r"Bad\.number: name 'Int33' is not defined"):
        unknown.decode(0, b"")  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [0, 1, 126, 127, 300])
def test_a_boolean_before_a_length_leaves_other_lengths_as_they_are(size: int) -> None:
    value = Flagged(is_dry=True, hosts=["h" * size, ""] * size)
    assert Flagged.decode_whole(0, value.encode(0)) == value


class Row(Struct):
    items: Annotated[Sequence[Partition], SHARED]


class Rows(Struct, flexible=2):
    rows: Sequence[Row]


@pytest.mark.parametrize("version", [0, 2])
def test_an_array_that_structures_share_is_written_once(version: int) -> None:
    class Counted(list[Partition]):
        turns = 0

        def __iter__(self) -> Iterator[Partition]:
            self.turns += 1
            return super().__iter__()

    shared, own = Counted([Partition(index=1, offset=2)]), Counted([Partition(index=3, offset=4)])
    value = Rows(rows=[Row(items=each) for each in (shared, own, shared)])
    data = value.encode(version)
    assert (shared.turns, own.turns) == (1, 1)
    assert Rows.decode_whole(version, data) == value


def test_the_text_of_a_structure_does_not_show_secret_bytes() -> None:
    class Login(Struct):
        user: String
        password: SecretBytes

    assert repr(Login(user="u", password=b"pencil")).endswith("Login(user='u', password=[hidden])")


def test_a_class_is_constructed_with_its_own_fields_after_its_base_class_was() -> None:
    assert Answer(message="a").encode(0) == b"\x00\x01a"
    assert LongAnswer(message="a", code=3).encode(0) == b"\x00\x01a\x00\x03"


class Inner(Struct, frozen=True, kw_only=False):
    number: Int32
    names: tuple[String, ...] = ()


class Frozen(Struct, flexible=0, frozen=True, kw_only=False):
    size: Int16
    inner: Annotated[Inner | None, Nullable()] = tagged(0, default=Inner(0))
    count: Int64 = tagged(1, default=-1)


class OneTag(Struct, flexible=0, frozen=True, kw_only=False):
    text: String
    topic_id: Uuid = tagged(0, default=bytes(16))


def test_frozen_structures_are_hashed_and_compared_by_their_fields() -> None:
    assert Inner(1, ("a",)) == Inner(1, ("a",)) != Inner(1)
    assert Inner(1) != Frozen(1)
    assert {Inner(1, ("a",)), Inner(1, ("a",)), Frozen(1)} == {Inner(1, ("a",)), Frozen(1)}


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Frozen(1), "0001 00"),
        (Frozen(1, None), "0001 01 00 01 00"),
        (Frozen(1, Inner(7)), "0001 01 00 07 01 00000007 01 00"),
        (Frozen(1, Inner(0, ()), 5), "0001 01 01 08 0000000000000005"),
        (OneTag("a"), "02 61 00"),
        (OneTag("a", bytes(16)), "02 61 00"),
        (OneTag("a", ID), "02 61 01 00 10" + ID.hex()),
    ],
)
def test_a_tagged_structure_is_marked_0_for_null_and_1_otherwise(value: Struct, data: str) -> None:
    assert value.encode(0) == bytes.fromhex(data)
    assert type(value).decode_whole(0, bytes.fromhex(data)) == value


def test_a_tagged_field_must_be_as_long_as_its_value() -> None:
    for data, sentence in (
        ("0001 01 01 09 000000000000000500", "count: a tagged field of 9 bytes, not 8"),
        ("0001 01 00 02 0000", "inner: 1 bytes are left over"),
        ("0001 01 00 01 02", "inner: a structure that is neither null nor present, but 2"),
    ):
        with pytest.raises(DecodeError, match=sentence):
            Frozen.decode(0, bytes.fromhex(data))
