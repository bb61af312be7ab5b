"""`openssl s_client` at Apache Kafka: the outcomes of the cases that tests/broker/network/test_openssl_client.py has.

Alerts differ in their numbers: OpenSSL's are more specific than Java's. Kafka on Java 17 resumes no session of
s_client, and its TLS 1.2 suites include those with SHA-1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.apache_kafka import Kafka
from tests.support.openssl_client import need_openssl
from tests.support.openssl_matrix import (
    CASES,
    LISTENERS,
    RESUMPTIONS,
    Case,
    Files,
    play,
    renegotiate,
    resume,
    update_keys,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    need_openssl()
    return Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def ports(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    kafka = Kafka("4.3.0", tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("kafka"))
    kafka.settings |= files.settings()
    kafka.extra_listeners = dict.fromkeys(LISTENERS, "SSL")
    kafka.format()
    with kafka.running():
        yield kafka.extra_ports


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_outcome_is_that_of_kafka(case: Case, files: Files, ports: dict[str, int]) -> None:
    assert play(case, files, ports) == (case.kafka or case.expected)


@pytest.mark.parametrize("name", RESUMPTIONS)
def test_kafka_resumes_no_session(name: str, files: Files, ports: dict[str, int], tmp_path: Path) -> None:
    found = resume(RESUMPTIONS[name], files, ports, tmp_path)
    assert [(is_resumed, outcome.rpartition(" ")[2]) for is_resumed, outcome in found] == [
        (False, "alice"),
        (False, "alice"),
        (False, "anonymous"),
    ]


def test_kafka_refuses_renegotiation_and_serves_others(files: Files, ports: dict[str, int]) -> None:
    assert renegotiate(files, ports) == [True, False, True]


def test_kafka_updates_keys(files: Files, ports: dict[str, int]) -> None:
    assert update_keys(files, ports) == [True, True, True]
