"""Where transactions are written and ended: by the native protocol, or by Kafka's (option `protocol`)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from barnabas.clients.config import ProducerConfig
from barnabas.clients.producer.prepared import PreparedTransactions
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.sink.decisions import Ending
from barnabas.pipeline.sink.options import DEFAULT_TIMEOUT_MS, SinkOptions

if TYPE_CHECKING:
    from barnabas.pipeline.sink.rows import SinkRecord
    from barnabas.pipeline.sink.run_files import RunFiles
    from barnabas.pipeline.sink.transactional_task import Attempt, Prepared


class Target(Protocol):
    """The cluster that is written to."""

    def ending(self) -> AbstractAsyncContextManager[Ending]:
        """Return a connection that ends transactions."""

    def write(self, records: Iterable[SinkRecord], attempt: Attempt, run: RunFiles | None) -> Prepared:
        """Write an attempt's rows and leave their transaction open. Raises PipelineError, ClientError, OSError."""


class NativeTarget:
    """Barnabas. `timeout_ms` None: two-phase commit."""

    def __init__(self, config: ProducerConfig, timeout_ms: int | None) -> None:
        self._config = config
        self._timeout_ms = timeout_ms

    def ending(self) -> PreparedTransactions:
        """See Target."""
        return PreparedTransactions(self._config)

    def write(self, records: Iterable[SinkRecord], attempt: Attempt, run: RunFiles | None) -> Prepared:
        """See Target."""
        import uvloop

        from barnabas.pipeline.sink.transactional_task import write_prepared

        return uvloop.run(write_prepared(self._config, self._timeout_ms, records, attempt, run))


class KafkaTarget:
    """Apache Kafka, or another broker that speaks its protocol."""

    def __init__(self, config: ProducerConfig, timeout_ms: int) -> None:
        self._config = config
        self._timeout_ms = timeout_ms

    def ending(self) -> AbstractAsyncContextManager[Ending]:
        """See Target."""
        from barnabas.pipeline.sink.kafka.transactions import KafkaTransactions

        return KafkaTransactions(self._config)

    def write(self, records: Iterable[SinkRecord], attempt: Attempt, run: RunFiles | None) -> Prepared:
        """See Target. Raises OptionError without confluent-kafka."""
        if find_spec("confluent_kafka") is None:
            raise OptionError(
                "option protocol=kafka needs the package confluent-kafka on every executor: install barnabas with the "
                "extra kafka"
            )
        from barnabas.pipeline.sink.kafka.attempt import write_prepared

        return write_prepared(self._config, self._timeout_ms, records, attempt, run)


def target_of(options: SinkOptions) -> Target:
    """Return the target of a writer's options."""
    if options.kafka_protocol:
        timeout_ms = options.transaction_timeout_ms
        return KafkaTarget(options.producer, DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms)
    return NativeTarget(options.producer, options.transaction_timeout_ms)
