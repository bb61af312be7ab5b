"""Two active brokers on both sides of a cut network: never do both acknowledge, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from barnabas import Admin, AdminConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import ACKS_ALL
from barnabas.protocol.records import RecordBatchBuilder, iter_batches, read_records
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.free_ports import free_port
from tests.support.mirrors.torn_network import TornNetwork
from tests.support.standby import Standby
from tests.support.wire import WireClient

TOPIC = "t"
SETTINGS = ("standby.min.acks=1", "replica.lag.time.max.ms=500")
ENOUGH = 20


@dataclass
class Load:
    """Produces one record after the other with acks=all at one address, whoever serves there."""

    port: int
    acknowledged: list[bytes] = field(default_factory=list)
    refusals: int = 0
    lost_connections: int = 0
    is_over: bool = False

    def run(self) -> None:
        """Produce until `is_over`."""
        number = 0
        while not self.is_over:
            try:
                with WireClient("127.0.0.1", self.port) as client:
                    while not self.is_over:
                        number += 1
                        value = b"%d-%d" % (self.port, number)
                        error = client.produce(TOPIC, batch(value), acks=ACKS_ALL).error
                        if error is ErrorCode.NONE:
                            self.acknowledged.append(value)
                        else:
                            self.refusals += 1
            except OSError:  # the broker was killed or has stopped
                self.lost_connections += 1
                time.sleep(0.01)  # bounded by the test; another process offers no event to wait on

    async def until(self, *, acknowledged: int = 0, refusals: int = 0) -> None:
        """Wait until there are that many more of each."""
        acknowledged, refusals = acknowledged + len(self.acknowledged), refusals + self.refusals

        def reached() -> bool | None:
            return True if len(self.acknowledged) >= acknowledged and self.refusals >= refusals else None

        await asyncio.to_thread(eventually, reached, what=f"answers of port {self.port}", timeout_s=30)


def batch(value: bytes) -> bytes:
    builder = RecordBatchBuilder(max_bytes=1000)
    builder.append(1, None, value)
    return builder.build()


def stored(daemon: Daemon) -> list[bytes]:
    """Return all values of the topic, of files that no broker writes any more."""
    (path,) = daemon.data_directory.glob(f"{TOPIC}-0/*.log")
    found = iter_batches(memoryview(path.read_bytes()))
    return [record.value or b"" for each in found for record in read_records(each)]


async def test_an_active_broker_that_is_cut_off_or_comes_back_acknowledges_nothing(tmp_path: Path) -> None:
    async with TornNetwork(random.Random(1)) as network:
        old_port, new_port = free_port(), free_port()
        network.upstream = ("127.0.0.1", old_port)
        active = await asyncio.to_thread(
            start_daemon,
            tmp_path / "active",
            *SETTINGS,
            f"listeners=127.0.0.1:{old_port}",
            f"advertised.listeners={network.address}",
        )
        settings = {"listeners": f"127.0.0.1:{new_port}", "standby.min.acks": 1}
        standby = Standby(tmp_path / "standby", network.address, settings=settings)
        old, new = Load(old_port), Load(new_port)
        running: list[asyncio.Task[None]] = []
        try:
            with WireClient("127.0.0.1", old_port) as client:
                client.create_topic(TOPIC)
            await asyncio.to_thread(standby.start)
            running.append(asyncio.create_task(asyncio.to_thread(old.run)))
            await old.until(acknowledged=ENOUGH)

            network.take_down()
            await old.until(refusals=1)
            promised = len(old.acknowledged)
            await asyncio.to_thread(standby.promote)
            await old.until(refusals=ENOUGH)
            # Not even the new one acknowledges, before it has a standby or is told to go on without.
            running.append(asyncio.create_task(asyncio.to_thread(new.run)))
            await new.until(refusals=ENOUGH)
            assert not new.acknowledged
            async with Admin(AdminConfig(bootstrap=standby.bootstrap)) as admin:
                await admin.alter_configs(broker="", set_to={"standby.min.acks": "0"})
            await new.until(acknowledged=ENOUGH)
            await asyncio.gather(old.until(refusals=ENOUGH), new.until(acknowledged=ENOUGH))
            await asyncio.to_thread(active.restart, clean=False)
            await asyncio.gather(old.until(refusals=ENOUGH), new.until(acknowledged=ENOUGH))

            network.bring_up()
            await asyncio.to_thread(
                eventually, lambda: None if active.running else True, what="the stop of the old broker", timeout_s=20
            )
            await new.until(acknowledged=ENOUGH)
        finally:
            old.is_over = new.is_over = True
            await asyncio.gather(*running)
            await asyncio.to_thread(standby.stop)
            await asyncio.to_thread(active.stop)
        assert len(old.acknowledged) == promised, "two active brokers have acknowledged"
        found = stored(standby)
        missing = {*old.acknowledged, *new.acknowledged} - {*found}
        assert not missing, f"acknowledged, and lost: {sorted(missing)[:5]}, {len(missing)} in all"
        assert len({*found}) == len(found)
        assert old.lost_connections
