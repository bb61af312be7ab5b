"""What clients that we did not write do with the refusal of a mirrored topic: they fail the record and do not retry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from barnabas.protocol.records import Record
from tests.interop.clients.driver import Driver
from tests.interop.clients.programs import CLIENTS, Client
from tests.support.daemon import Daemon, start_daemon
from tests.support.metrics import metric
from tests.support.mirrored_topics import add_mirror, broker_config

REFUSALS = 'barnabas_request_errors_total{api="produce",error="policy_violation"}'
RECORD = Record(0, 1_700_000_000_000, b"key", b"value", ())


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path) as prepared:
        assert prepared.stop() == 0
    add_mirror(broker_config(tmp_path / "data"), "east", {"orders": 1})
    with start_daemon(tmp_path) as daemon:
        yield daemon


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_refused_record_fails_at_its_first_request_and_a_released_topic_is_written(
    client: Client, daemon: Daemon, tmp_path_factory: pytest.TempPathFactory
) -> None:
    driver = Driver(client.command(), tmp_path_factory.mktemp("driver"), client.limits)
    try:
        driver.bootstrap = daemon.bootstrap
        error = driver.produce_one("orders", RECORD)
        assert error == 44 or "olicy" in str(error)
        assert metric(daemon, REFUSALS) == 1
        deleted = CliRunner().invoke(
            main, ["mirror", "delete", "east", "--release-topics", "--bootstrap", daemon.bootstrap]
        )
        assert deleted.exit_code == 0, deleted.stderr
        driver.produce("orders", [RECORD])
    finally:
        driver.close()
