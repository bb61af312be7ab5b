"""Clients that we did not write through switches to a standby with standby.min.acks=1, planned ones and after kill -9.

A client knows the addresses of both brokers, and nothing else about them. Each replaced broker comes back as the
standby of the other one. Transactions of librdkafka are left out: their driver needs metadata.recovery.strategy=none
(see confluent_transactions), and then librdkafka forgets the other address when it has connected to the first one.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record
from tests.interop.clients.driver import Driver
from tests.interop.clients.features import Check, Trial
from tests.interop.clients.programs import CLIENTS, Client
from tests.interop.clients.target import Target
from tests.interop.clients.transaction_features import transform_through_restarts
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.standby import Standby

SETTINGS = {
    "standby.min.acks": 1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
}
NAMES = ("confluent-kafka", "Java 4.3.0", "franz-go")

pytestmark = pytest.mark.timeout(240)


class Pair(Target):
    """Two brokers of which one is active; `restart` switches to the other one, every second time after kill -9."""

    name = "Barnabas with a standby"
    version = ""

    def __init__(self, directory: Path) -> None:
        ports = free_port(), free_port()
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
        self._settings = [{**SETTINGS, "listeners": f"127.0.0.1:{port}"} for port in ports]
        self._active: Daemon = start_daemon(
            directory / "0", *(f"{name}={value}" for name, value in self._settings[0].items())
        )
        self._standby = Standby(directory / "1", self._active.bootstrap, settings=self._settings[1])
        self._standby.start()
        self.switches = 0

    @property
    def log_directory(self) -> Path:  # type: ignore[override]
        """The active broker's."""
        return self._active.data_directory

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic."""
        self._active.create_topic(name, partitions=partitions, configs=configs)
        self._standby.until()

    def append(self, topic: str, records: list[Record], codec: Codec) -> None:
        """Not needed here."""
        raise NotImplementedError

    def earliest(self, topic: str) -> int:
        """Not needed here."""
        raise NotImplementedError

    def restart(self) -> None:
        """Switch: the standby takes over, and the replaced broker becomes its standby."""
        old, new = self._active, self._standby
        new.until(lag=1000)
        if self.switches % 2:
            os.kill(new.pid, signal.SIGSTOP)  # what is acknowledged from now on is not at the standby
            time.sleep(0.3)
            old.kill()
            os.kill(new.pid, signal.SIGCONT)
            new.promote()
        else:
            new.promote(planned=True)
            eventually(lambda: None if old.running else True, what="the end of the replaced broker", timeout_s=30)
            assert old.stop() == 0
        self._active = new
        self._standby = Standby(old.directory, new.bootstrap, settings=old.settings)
        self._standby.start()
        self.switches += 1

    def close(self) -> None:
        """Stop both."""
        self._standby.stop()
        self._active.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    yield pair
    pair.close()


def switched_twice(trial: Trial) -> None:
    """An idempotent producer continues through both kinds of switch: nothing is lost, doubled or out of order."""
    trial.create()
    with trial.driver.stream(trial.topic) as stream:
        for _ in range(2):
            stream.wait_for_progress()
            trial.target.restart()
        stream.wait_for_progress()
    assert stream.result["failed"] == []
    stored = [int(record.value or b"-1") for record in trial.stored_records()]
    assert stored == list(range(stream.result["sent"]))


def transformed(trial: Trial) -> None:
    """A transformer continues through both kinds of switch: each record is in its output exactly once."""
    transform_through_restarts(trial, "classic", kills_client=False)


@pytest.mark.parametrize(
    ("client", "check"),
    [
        pytest.param(client, check, id=f"{client.name}-{check.__name__}")
        for client in CLIENTS
        if client.name in NAMES
        for check in (switched_twice, transformed)
        if (client.name, check) != ("confluent-kafka", transformed)
    ],
)
def test_nothing_is_lost_or_doubled_through_switches(
    client: Client, check: Check, pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def start() -> Driver:
        driver = Driver(client.command(), tmp_path_factory.mktemp("driver"), client.limits)
        driver.bootstrap = pair.bootstrap
        return driver

    driver = start()
    before = pair.switches
    try:
        topic = f"{re.sub('[^a-z0-9]', '', client.name.lower())}-{check.__name__.replace('_', '-')}"
        check(Trial(driver, pair, topic, client.member, start))
    finally:
        driver.close()
    assert pair.switches == before + 2
