"""Checks and refusals that the transitions share, with the codes that Kafka answers."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from barnabas.broker.printable import printable
from barnabas.broker.transactions.metadata import TransactionMetadata
from barnabas.protocol.errors import BrokerError, ErrorCode


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


class ProducerIdNeededError(Exception):
    """The transition needs a new producer id: call again with one."""


def ensure_current(current: TransactionMetadata | None, producer: ProducerIdAndEpoch) -> TransactionMetadata:
    """Return the state if the producer is the current one.

    Raises BrokerError INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED.
    """
    if current is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the transactional id is unknown")
    if current.producer_id != producer.producer_id:
        refuse_producer_id(current, producer.producer_id)
    if current.producer_epoch != producer.producer_epoch:
        fence(current, f"epoch {producer.producer_epoch} is not the current one, {current.producer_epoch}")
    return current


def ensure_new_id(new_producer_id: int | None) -> int:
    """Return the id; raise ProducerIdNeededError without one."""
    if new_producer_id is None:
        raise ProducerIdNeededError
    return new_producer_id


def refuse_while_ending(current: TransactionMetadata) -> NoReturn:
    """Raise BrokerError CONCURRENT_TRANSACTIONS."""
    raise BrokerError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"the last transaction of {printable(current.transactional_id)} is being ended, state={current.state.label}",
    )


def refuse_producer_id(current: TransactionMetadata, producer_id: int) -> NoReturn:
    """Raise BrokerError INVALID_PRODUCER_ID_MAPPING."""
    raise BrokerError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"producer id {producer_id} is not that of {printable(current.transactional_id)}, {current.producer_id}",
    )


def fence(current: TransactionMetadata, reason: str) -> NoReturn:
    """Raise BrokerError PRODUCER_FENCED."""
    raise BrokerError(ErrorCode.PRODUCER_FENCED, f"{printable(current.transactional_id)}: {reason}")
