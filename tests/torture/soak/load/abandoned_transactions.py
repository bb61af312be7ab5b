"""Transactions whose producers go away without ending them, which is left to the broker."""

from __future__ import annotations

from barnabas import Producer, ProducerConfig
from barnabas.clients.errors import ClientError
from tests.torture.soak.history import ABORTED, Transaction
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause

_PAUSE_S = 1.0
"""Between two transactions. An open one holds back the readers of the ledger."""


class AbandonedTransactions:
    """Writes to the ledger in transactions with short timeouts, each under an id that is used once in a round."""

    def __init__(self, stage: Stage, bootstrap: str) -> None:
        self._stage = stage
        self._bootstrap = bootstrap

    async def run(self) -> None:
        """Write until the stage ends."""
        stage = self._stage
        chance = stage.chance("abandoned")
        number = 0
        while not stage.writers_end.is_set():
            number += 1
            config = ProducerConfig(
                bootstrap=self._bootstrap,
                transactional_id=f"abandoned-{stage.seed}-{number}",
                transaction_timeout_ms=chance.randrange(1000, 3000),
            )
            try:
                async with Producer(config) as producer:
                    await self._abandon(producer, f"abandoned/{stage.number}/{number}", size=chance.randrange(1, 5))
            except ClientError as error:
                stage.note_error("abandoned", error)
            await pause(_PAUSE_S)

    async def _abandon(self, producer: Producer, name: str, size: int) -> None:
        transaction = Transaction(name, self._stage.history.tick(), outcome=ABORTED)
        self._stage.history.transactions.append(transaction)
        await producer.begin_transaction()
        for index in range(size * PARTITIONS):
            place = (self._stage.ledger, index % PARTITIONS)
            value = b"%s:%d" % (name.encode(), index)
            transaction.writes.append((place, value))
            await producer.send(place[0], value, partition=place[1])
        # A producer that is closed aborts what is open, but for a prepared transaction.
        transaction.is_abandoned = await producer.prepare_transaction() is not None
