"""Collector over transactions: those that are open, how the others ended, and markers that are still to be written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes


class TransactionCollector:
    """Transactions. The lag of the last stable offset, by partition, is among the logs."""

    ids = Family("barnabas_transactional_ids", "gauge", "Transactional ids that the broker keeps.")
    open = Family("barnabas_transactions_open", "gauge", "Open transactions.")
    oldest = Family(
        "barnabas_transactions_oldest_open_seconds", "gauge", "Age of the oldest open transaction, 0 without one."
    )
    missing_markers = Family(
        "barnabas_transactions_missing_markers",
        "gauge",
        "End markers of decided transactions that could not be written yet.",
    )
    committed = Family("barnabas_transactions_committed_total", "counter", "Transactions committed.")
    aborted = Family("barnabas_transactions_aborted_total", "counter", "Transactions aborted by their producer.")
    timed_out = Family(
        "barnabas_transactions_timed_out_total", "counter", "Transactions aborted because they were open for too long."
    )
    replaced = Family(
        "barnabas_transactions_replaced_total",
        "counter",
        "Transactions aborted because another producer, or an operator, took over the transactional id.",
    )
    fencings = Family(
        "barnabas_transactions_fencings_total",
        "counter",
        "Requests to the coordinator refused because another producer, or a timeout, has fenced theirs. Records of a"
        " fenced producer count in barnabas_request_errors_total, as invalid_producer_epoch.",
    )
    families: ClassVar = (ids, open, oldest, missing_markers, committed, aborted, timed_out, replaced, fencings)

    def __init__(self, probes: BrokerProbes, state: BrokerState) -> None:
        self._probe = probes.transactions
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters and states as they are now."""
        transactions, probe = self._state.transactions, self._probe
        ids = opened = missing = 0
        age_ms = 0
        if transactions is not None:
            ids = len(transactions.log.states)
            starts = transactions.log.open_since_ms()
            opened = len(starts)
            missing = transactions.completion.missing_markers
            age_ms = max(0, round(time.time() * 1000) - min(starts)) if starts else 0
        for family, value in (
            (self.ids, ids),
            (self.open, opened),
            (self.oldest, age_ms / 1000),
            (self.missing_markers, missing),
            (self.committed, probe.committed),
            (self.aborted, probe.aborted),
            (self.timed_out, probe.timed_out),
            (self.replaced, probe.replaced),
            (self.fencings, probe.fencings),
        ):
            yield family.render([((), value)])
