"""rskafka, a small client in Rust without groups."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.building import build_folder, built, need, run_step
from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import Client, survive_kills

PROJECT = Path(__file__).parent / "rskafka"
BUILD_TIMEOUT_S = 1200


@pytest.fixture(scope="module")
def client() -> Client:
    need("cargo", "rskafka")
    sources = [PROJECT / name for name in ("Cargo.toml", "main.rs")]

    def build(directory: Path) -> None:
        # Cargo's lock names the address of an index, so it is kept in the cache instead of in the repository.
        project = build_folder("rskafka-project")
        for source in sources:
            shutil.copy(source, project)
        run_step(["nice", "cargo", "build", "--quiet"], project, timeout_s=BUILD_TIMEOUT_S)
        shutil.copy(project / "target" / "debug" / "deliveries", directory)

    program = str(built("rskafka", sources, build) / "deliveries")
    return Client([program, "produce"], [program, "consume"], commits=False)


@pytest.mark.ecosystem("rskafka", "0.6.0", "producer and consumer of single partitions; it has no groups")
def test_rskafka_delivers_everything_when_the_broker_is_killed(daemon: Daemon, client: Client, tmp_path: Path) -> None:
    survive_kills(daemon, client, tmp_path)
