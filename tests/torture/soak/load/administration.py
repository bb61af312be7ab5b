"""Administrative changes, moves between log directories, and peers that come and leave."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from pathlib import Path

from barnabas import Admin, AdminConfig, TopicPartition
from barnabas.clients.errors import ClientError
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause


class Administrator:
    """Creates, grows, changes and deletes topics, and moves partitions to the other log directory."""

    def __init__(self, stage: Stage, directories: Sequence[Path]) -> None:
        self._stage = stage
        self._directories = [str(each) for each in directories]
        self._created = 0

    async def run(self) -> None:
        """Change things until the stage ends."""
        stage = self._stage
        chance = stage.chance("administrator")
        while not stage.writers_end.is_set():
            try:
                async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
                    await chance.choice((self._churn, self._alter, self._move))(admin, chance)
            except ClientError as error:
                stage.note_error("administrator", error)
            await pause(0.2)

    async def _churn(self, admin: Admin, chance: random.Random) -> None:
        self._created += 1
        name = f"churn-{self._stage.seed}-{self._stage.number}-{self._created}"
        await admin.create_topic(name, partitions=chance.randrange(1, 4))
        await admin.create_partitions(name, 5)
        await admin.delete_topic(name)

    async def _alter(self, admin: Admin, chance: random.Random) -> None:
        size = str(chance.choice((65536, 131072, 262144)))
        await admin.alter_configs(topic=self._stage.plain, set_to={"segment.bytes": size})

    async def _move(self, admin: Admin, chance: random.Random) -> None:
        topic = chance.choice((self._stage.plain, self._stage.ledger, self._stage.keyed, self._stage.trimmed))
        place = TopicPartition(topic, chance.randrange(PARTITIONS))
        await admin.alter_replica_log_dirs({place: chance.choice(self._directories)})


class Peers:
    """Peers that connect, send the beginning of a frame or of a TLS handshake, and leave."""

    def __init__(self, stage: Stage, ports: Sequence[int]) -> None:
        self._stage = stage
        self._ports = ports

    async def run(self) -> None:
        """Come and leave until the stage ends."""
        chance = self._stage.chance("peers")
        greetings = (
            b"",
            b"\x00\x00\x01\x00\x00\x12",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"GET / HTTP/1.1",
        )
        while not self._stage.writers_end.is_set():
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", chance.choice(self._ports))
                writer.write(chance.choice(greetings))
                await writer.drain()
                await pause(0.01)
                writer.transport.abort()
            await pause(0.05)
