"""The table of compressed bodies against the decoders of Apache Kafka, as its broker and its consumer use them."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.bodies import Verdict, bodies, listed


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_kafka_makes_of_each_body_what_the_table_says(version: str, tmp_path: Path) -> None:
    (tmp_path / "bodies").write_bytes(b"".join(body.batch() for body in bodies()))
    printed = Kafka(version, tmp_path / "unused", tmp_path).java_program("DecodeBodies", str(tmp_path / "bodies"))
    expected, found = [], []
    for body, line in zip(bodies(), printed.splitlines(), strict=True):
        is_taken, read, _ = line.split("\t")
        values = f"{zlib.crc32(b''.join(each.value or b'' for each in listed(body.records))):x}"
        is_read = is_taken == "taken" and read == values
        expected.append((body.name, body.verdict is not Verdict.REFUSED))
        found.append((body.name, is_read))
    assert found == expected
