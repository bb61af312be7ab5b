"""The facts about open transactions in the directories of a stopped broker. Nothing is written or locked."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_directory import DirectoryKind, parse_directory_name
from barnabas.broker.storage.inspection.open_transactions import open_transactions
from barnabas.broker.storage.inspection.transaction_decisions import Decision, transaction_decisions
from barnabas.broker.storage.read_only.log_manager import ReadOnlyLogManager
from barnabas.commands.failures import CommandFailure
from barnabas.explanation.transaction_findings import (
    ExplainedTransactions,
    KnownTransaction,
    OpenInPartition,
    PartitionFacts,
    explain_partition,
)
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig


def explain_stored(
    config: BrokerConfig,
    *,
    transactional_id: str | None = None,
    producer_id: int | None = None,
    partitions: Sequence[TopicPartition] = (),
) -> ExplainedTransactions:
    """Explain one id, one producer, some partitions, or (none of them) all. Raises CommandFailure, OSError."""
    try:
        return _explain(config, transactional_id, producer_id, partitions)
    except DecodeError as error:
        raise CommandFailure(f"the transactions cannot be read: {error}") from error
    except StorageError as error:
        raise CommandFailure(f"{error.path}: {error.message}") from error


def _explain(
    config: BrokerConfig,
    transactional_id: str | None,
    producer_id: int | None,
    partitions: Sequence[TopicPartition],
) -> ExplainedTransactions:
    known = [_known(each) for each in transaction_decisions(config.log_dirs).values()]
    asked = [each for each in known if each.transactional_id == transactional_id or each.producer_id == producer_id]
    if transactional_id is not None and not asked:
        raise CommandFailure(f"the directories have no transactional id {transactional_id!r}")
    directories = _partition_directories(config.log_dirs)
    for each in partitions:
        if each not in directories:
            raise CommandFailure(f"no log of {each} in {', '.join(map(str, config.log_dirs))}")
    found = {
        partition: tuple(
            OpenInPartition(each.producer_id, each.producer_epoch, each.first_offset, each.last_timestamp)
            for each in open_transactions(path)
        )
        for partition, path in directories.items()
        if not partitions or partition in partitions
    }
    if transactional_id is not None or producer_id is not None:
        owners = {each.producer_id for each in asked} | ({producer_id} if producer_id is not None else set())
        found = {key: each for key, each in found.items() if any(one.producer_id in owners for one in each)}
        if not found and not asked:
            raise CommandFailure(f"no transactional id and no open transaction has producer id {producer_id}")
    elif not partitions:
        found = {key: each for key, each in found.items() if each}
    now_ms = time.time_ns() // 1_000_000
    offsets = _offsets(config, found)
    findings = [
        explain_partition(PartitionFacts(partition, *offsets[partition], opened), known, now_ms=now_ms)
        for partition, opened in sorted(found.items())
        if partition in offsets
    ]
    return ExplainedTransactions(now_ms, tuple(asked), tuple(findings))


def _partition_directories(log_dirs: Iterable[Path]) -> dict[TopicPartition, Path]:
    found = {}
    for log_dir in log_dirs:
        for path in log_dir.iterdir():
            parsed = parse_directory_name(path.name) if path.is_dir() else None
            if parsed is not None and parsed.kind is DirectoryKind.CURRENT:
                found[parsed.topic_partition] = path
    return {key: path for key, path in found.items() if key.topic != CLUSTER_METADATA_TOPIC}


def _offsets(config: BrokerConfig, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    """Return high watermark and last stable offset of these partitions, as a broker that starts here has them."""
    manager = ReadOnlyLogManager(config)
    try:
        manager.open_directories()
        for topic in sorted({each.topic for each in partitions}):
            manager.load_logs(lambda _: config.log_config, topic=topic)
        return {log.topic_partition: (log.high_watermark, log.last_stable_offset) for log in manager.logs()}
    finally:
        manager.shutdown()


def _known(decision: Decision) -> KnownTransaction:
    is_open = decision.is_unfinished and decision.start_ms >= 0
    return KnownTransaction(
        decision.transactional_id,
        decision.status_name,
        decision.producer_id,
        decision.producer_epoch,
        decision.timeout_ms,
        decision.start_ms if is_open else None,
        decision.partitions,
    )
