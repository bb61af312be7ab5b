"""The modules that a start imports before it serves: each costs 0.2 to 1 ms of every start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

OURS_MAX = 369
"""Modules of ours before the broker is ready. A change that raises it makes every start slower: load late instead."""

_IMPORT = re.compile(r"import time: +\d+ \| +\d+ \| *(\S+)")


def _imported_before_ready(directory: Path) -> set[str]:
    """Start and stop a broker, and return the names of the modules that were imported before it was ready."""
    # Coverage would import libraries of its own into the process.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("BARNABAS_", "COVERAGE_"))}
    properties = [f"log.dirs={directory / 'data'}", "listeners=127.0.0.1:0", "metrics.listener=127.0.0.1:0"]
    arguments = [part for each in properties for part in ("--set", each)]
    log = directory / "importtime.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "barnabas", "serve", *arguments], env=environ, stderr=stderr
        )
    try:
        deadline = time.monotonic() + 60
        while " ready, seconds=" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.01)
    finally:
        process.terminate()
        process.wait(60)
    before, _, _ = log.read_text().partition(" ready, seconds=")
    return set(_IMPORT.findall(before))


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> list[set[str]]:
    """The modules of a first start and of a start on the same directory."""
    directory = tmp_path_factory.mktemp("start")
    return [_imported_before_ready(directory) for _ in range(2)]


def test_a_start_imports_no_more_modules_than_it_needs(starts: list[set[str]]) -> None:
    for modules in starts:
        assert len([name for name in modules if name.startswith("barnabas")]) <= OURS_MAX


def test_a_start_imports_no_library_that_plain_clients_do_not_need(starts: list[set[str]]) -> None:
    late = {"click", "cramjam", "msgpack", "cryptography", "jwt", "re2", "rich", "prometheus_client"}
    late |= {"hashlib", "hmac", "json", "random", "secrets", "tempfile", "uuid", "datetime", "email", "http", "gettext"}
    for modules in starts:
        assert not late & modules


def test_a_start_without_groups_and_transactions_creates_no_coordinator(starts: list[set[str]]) -> None:
    late: tuple[str, ...] = (
        "barnabas.broker.authorization.authorizer",
        "barnabas.broker.coordinator_log.log",
        "barnabas.broker.groups.",
        "barnabas.broker.metadata.features",
        "barnabas.broker.mirrors.manager",
        "barnabas.broker.partitions.fetch_conversion",
        "barnabas.broker.read_only",
        "barnabas.broker.security.sasl.gates",
        "barnabas.broker.security.tokens.",
        "barnabas.broker.storage.cleaning.rewriting.",
        "barnabas.broker.transactions.",
        "barnabas.clients",
        "barnabas.commands.main",
        "barnabas.protocol.groups",
        "barnabas.protocol.mirrors.definition",
        "barnabas.protocol.native",
        "barnabas.protocol.records.legacy.up_conversion",
        "barnabas.protocol.sasl",
        "barnabas.protocol.transactions",
    )
    for modules in starts:
        assert [name for name in modules if name.startswith(late)] == []
