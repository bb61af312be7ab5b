"""The coordinators of groups, transactions and share partitions, which are created at their first use.

A start creates one only if its topic exists (`__consumer_offsets`, `__transaction_state`, `__share_group_state`),
because it has to load it, or if a partition has an open transaction, because nothing may be there to end it. Otherwise
a start would wait 25 ms for their 50 modules, which `broker.warm_up` imports once the broker serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator_log.log import CoordinatorLog
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.groups.coordinator import GroupCoordinator
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.handlers.data.produce_admission import Admission, PartitionKey
    from barnabas.broker.metrics.state import BrokerState
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.producer_ids import ProducerIds
    from barnabas.broker.share.coordinator import ShareCoordinator
    from barnabas.broker.share.partitions import SharePartitions
    from barnabas.broker.transactions.coordinator import TransactionCoordinator


class Coordinators:
    """Owns them, and starts and stops what was created. Event loop only."""

    def __init__(
        self,
        parts: LogParts,
        *,
        state: BrokerState,
        producer_ids: ProducerIds,
        blocking_io: Executor,
        probes: BrokerProbes,
    ) -> None:
        """`state` gets what the metrics port reads of them."""
        self._parts = parts
        self._state = state
        self._producer_ids = producer_ids
        self._blocking_io = blocking_io
        self._probes = probes
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._share: ShareCoordinator | None = None
        self._share_partitions: SharePartitions | None = None
        self._started = False
        self._refusing = False
        self._stopped = False

    @property
    def has_consumer_protocol(self) -> bool:
        """Whether group.coordinator.rebalance.protocols includes the consumer protocol."""
        return "consumer" in self._parts.config.static.get_list("group.coordinator.rebalance.protocols")

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator."""
        if self._groups is None:
            from barnabas.broker.groups.coordinator import GroupCoordinator

            parts = self._parts
            groups = self._groups = GroupCoordinator(
                parts,
                blocking_io=self._blocking_io,
                probe=self._probes.groups,
                share_coordinator=lambda: self.share,
            )
            if parts.config.static.get_bool("metrics.group.lag.enable"):
                self._state.committed_offsets = groups.offsets.committed
            if self._refusing:
                groups.refuse_members()
            if self._started and not self._stopped:
                groups.start()
        return self._groups

    def group_offsets(self) -> GroupOffsets:
        """Return the offsets of all groups."""
        return self.groups.offsets

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, which needs the group coordinator."""
        if self._transactions is None:
            from barnabas.broker.transactions.coordinator import TransactionCoordinator

            groups = self.groups
            transactions = self._transactions = TransactionCoordinator(
                self._parts,
                offsets=groups,
                producer_ids=self._producer_ids,
                blocking_io=self._blocking_io,
                probe=self._probes.transactions,
            )
            groups.add_load_listener(transactions.completion.retry_now)
            self._state.transactions = transactions
            if self._started and not self._stopped:
                transactions.start()
        return self._transactions

    @property
    def share(self) -> ShareCoordinator:
        """The coordinator of share partitions' states."""
        if self._share is None:
            from barnabas.broker.share.coordinator import ShareCoordinator

            share = self._share = ShareCoordinator(self._parts, blocking_io=self._blocking_io)
            if self._started and not self._stopped:
                share.start()
        return self._share

    @property
    def share_partitions(self) -> SharePartitions:
        """The share partitions that members of share groups fetch from."""
        if self._share_partitions is None:
            from barnabas.broker.share.partitions import SharePartitions

            self._share_partitions = SharePartitions(self._parts, self.share, self._probes.share)
            self._share_partitions.is_stopping = self._refusing
            self._state.share_partitions = self._share_partitions
        return self._share_partitions

    def unserved(self, key_type: int, key: str) -> BrokerError | None:
        """Return COORDINATOR_NOT_AVAILABLE for a key whose partition of the internal topic exists and is not served.

        `key_type`: of FindCoordinator. A key of a topic that does not exist yet is served: its first use creates it.
        """
        log = self._log_of(key_type)
        if log is None:
            return None
        try:
            log.ensure_loaded(key)
        except BrokerError as error:
            return error if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE else None
        return None

    def _log_of(self, key_type: int) -> CoordinatorLog | None:
        """Return the log of a type of key; None if its topic does not exist."""
        from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY, SHARE_KEY, TRANSACTION_KEY

        topics = self._parts.store.image.topics
        if key_type == GROUP_KEY and OFFSETS_TOPIC in topics:
            return self.groups.log.coordinator_log
        if key_type == TRANSACTION_KEY and TRANSACTION_TOPIC in topics:
            return self.transactions.log.coordinator_log
        if key_type == SHARE_KEY and SHARE_STATE_TOPIC in topics:
            return self.share.log.coordinator_log
        return None

    def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[PartitionKey],
        *,
        adds: bool,
    ) -> Admission | Deferred[Admission]:
        """Ask the transaction coordinator, which the first transactional batch creates. See TransactionAdmission."""
        return self.transactions.admit(transactional_id, producer_id, producer_epoch, partitions, adds=adds)

    def start(self) -> None:
        """Begin to load what the topics contain. Called before the first client, which would find it unknown."""
        parts = self._parts
        topics = parts.store.image.topics
        if TRANSACTION_TOPIC in topics or any(producers for _, producers in parts.partitions.open_transactions()):
            _ = self.transactions
        if OFFSETS_TOPIC in topics or parts.config.static.get_bool("metrics.group.lag.enable"):
            _ = self.groups
        if SHARE_STATE_TOPIC in topics:
            _ = self.share
        self._started = True
        if self._groups is not None:
            self._groups.start()
        if self._transactions is not None:
            self._transactions.start()
        if self._share is not None:
            self._share.start()

    def refuse_members(self) -> None:
        """Answer NOT_COORDINATOR to waiting and to later members of groups, and the waiting fetches of share groups."""
        self._refusing = True
        if self._groups is not None:
            self._groups.refuse_members()
        if self._share_partitions is not None:
            self._share_partitions.stop()

    async def stop(self) -> None:
        """End their background tasks."""
        self._stopped = True
        if self._transactions is not None:
            await self._transactions.stop()
        if self._groups is not None:
            await self._groups.stop()
        if self._share is not None:
            await self._share.stop()
