"""States of a transactional id. Source: Kafka's TransactionState."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """Numbers of the log. DEAD and PREPARE_EPOCH_FENCE are pending states of Kafka's memory and never stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name, as ListTransactions and DescribeTransactions answer it."""
        return _LABELS[self]

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and markers may be missing."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def has_no_transaction(self) -> bool:
        """Whether no transaction is open or being ended."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


_LABELS: Final = {state: state.name.title().replace("_", "") for state in TransactionState}

STATES_BY_LABEL: Final = {label: state for state, label in _LABELS.items()}
