"""Segment files with random damage: unreadable bytes raise one kind of error, and returned data is valid Arrow."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from barnabas.pipeline.errors import CorruptLogError
from barnabas.pipeline.reading.options import parse_read_options
from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.segments.reading import read_from_segment
from barnabas.pipeline.source.batch import rules_of
from barnabas.protocol.records import Codec
from tests.support.storage.legacy import message_sets
from tests.support.storage.records import plain
from tests.support.storage.segments import segment_parts

ROUNDS = 40
WAYS: tuple[dict[str, str], ...] = (
    {"mode": "strict"},
    {"mode": "permissive"},
    {"mode": "permissive", "kafka.check.crcs": "false"},
    {"mode": "permissive", "kafka.check.crcs": "false", "kafka.isolation.level": "read_committed"},
)


def damage(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    kind = chance.choice(("flip", "overwrite", "remove", "insert", "cut"))
    if kind == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "overwrite":
        data[at : at + 4] = chance.randbytes(4)
    elif kind == "remove":
        del data[at : at + chance.randrange(1, 30)]
    elif kind == "insert":
        data[at:at] = chance.randbytes(chance.randrange(1, 30))
    else:
        del data[max(1, at) :]


def read(path: Path, options: dict[str, str]) -> int:
    """Return the rows, after Arrow has validated each batch."""
    given = {"path": str(path), **options}
    parsed = parse_read_options(given, is_streaming=False)
    rules = rules_of(parsed, source_schema(include_headers=True))
    rows = 0
    for part in segment_parts(given):
        for batch in read_from_segment(parsed, rules, part):
            batch.validate(full=True)
            rows += batch.num_rows
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_or_read_in_part_and_nothing_else(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory = tmp_path / "orders-0"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    batches = b"".join(bytes(plain(5, codec, base_offset=5 * index)) for index, codec in enumerate(Codec))
    messages = b"".join(each.data for each in message_sets().values())
    refusals: list[tuple[str, str]] = []
    for _ in range(ROUNDS):
        data = bytearray(chance.choice((batches, batches, messages)))
        for _ in range(chance.choice((1, 1, 2, 5))):
            damage(data, chance)
        path.write_bytes(data)
        for options in WAYS:
            try:
                read(directory, options)
            except CorruptLogError as error:
                refusals.append((options["mode"], str(error)))
    assert len(refusals) > ROUNDS // 2
    assert {mode for mode, _ in refusals} == {"strict"}
    assert all(str(path) in sentence for _, sentence in refusals)
