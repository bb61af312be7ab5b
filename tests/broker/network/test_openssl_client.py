"""`openssl s_client` at a real daemon: versions, suites, certificates, server names, resumption, renegotiation.

tests/interop/security/test_openssl_kafka.py has Apache Kafka's outcomes of the same cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
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
    with start_daemon(
        tmp_path_factory.mktemp("openssl"),
        "listeners=" + ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map=" + ",".join(f"{name}:SSL" for name in LISTENERS),
        *(f"{name}={value}" for name, value in files.settings().items()),
    ) as daemon:
        found = re.findall(r"listening, listener=(\w+)://\S+ port=(\d+)", daemon.log)
        yield {name: int(port) for name, port in found}
        assert "Traceback" not in daemon.log


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_client_gets_version_suite_and_user_or_an_alert(case: Case, files: Files, ports: dict[str, int]) -> None:
    assert play(case, files, ports) == case.expected


@pytest.mark.parametrize("name", RESUMPTIONS)
def test_a_resumed_session_keeps_its_user_and_its_listener(
    name: str, files: Files, ports: dict[str, int], tmp_path: Path
) -> None:
    first, again, elsewhere = resume(RESUMPTIONS[name], files, ports, tmp_path)
    assert not first[0]
    assert first[1].endswith(" alice")
    assert again == (True, first[1])
    assert elsewhere == (False, first[1].replace("alice", "anonymous"))


def test_renegotiation_is_refused_and_others_are_served(files: Files, ports: dict[str, int]) -> None:
    assert renegotiate(files, ports) == [True, False, True]


def test_updated_keys_are_used(files: Files, ports: dict[str, int]) -> None:
    assert update_keys(files, ports) == [True, True, True]
