"""aiokafka: an idempotent producer."""

from __future__ import annotations

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from tests.torture.soak.history import Write
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause


class AioIdempotent:
    """Sends bursts to all partitions of a topic in one session."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._stage = stage
        self._topic = topic

    async def run(self) -> None:
        """Write until the stage ends."""
        sessions = 0
        while not self._stage.writers_end.is_set():
            sessions += 1
            session = f"aiokafka-{self._stage.number}/{sessions}"
            producer = AIOKafkaProducer(bootstrap_servers=self._stage.torn_bootstrap, enable_idempotence=True)
            try:
                await producer.start()
                await self._send(producer, session)
            except KafkaError as error:
                self._stage.note_error(session, error)
                await pause(0.2)
            finally:
                await producer.stop()

    async def _send(self, producer: AIOKafkaProducer, session: str) -> None:
        stage = self._stage
        chance = stage.chance(session)
        number = 0
        while not stage.writers_end.is_set():
            sent = []
            for _ in range(chance.randrange(1, 10)):
                number += 1
                place = (self._topic, chance.randrange(PARTITIONS))
                value = b"%s:%d" % (session.encode(), number)
                sent.append((number, place, value, await producer.send(self._topic, value, partition=place[1])))
            for order, place, value, future in sent:
                found = await future
                stage.history.writes.append(Write(session, order, place, found.offset, value))
            await pause(0.05)
