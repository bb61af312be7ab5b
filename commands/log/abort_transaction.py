"""The work of `barnabas log abort-transaction`.

read_committed consumers stop at the first record of an open transaction. One that `__transaction_state` contains ends
after a start, by its producer, its timeout or its decision; a hanging one, which no coordinator knows, never ends. This
command ends both without a broker, as the coordinator would: by an abort marker in each partition, with its row in the
transaction index. A transaction that is already committed (PrepareCommit in `__transaction_state`) is left alone: its
producer may have received the confirmation, and the next start writes its markers, in Barnabas as in Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.broker.storage.cleaning.offline import OfflineServices
from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.clean_shutdown import CleanShutdownMarker
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.broker.storage.files.partition_directory import directory_name, parse_directory_name
from barnabas.broker.storage.inspection.open_transactions import OpenTransaction, open_transactions
from barnabas.broker.storage.inspection.transaction_decisions import (
    Decision,
    transaction_decisions,
)
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.commands.failures import CommandFailure
from barnabas.commands.log.confirmation import confirm
from barnabas.commands.log.log_directories import LogConfigs, data_directory_of, held_lock, logs_of, storage_failures
from barnabas.commands.output import print_line, print_note
from barnabas.explanation.wording import counted
from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.records.end_marker import EndMarker
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC, TRANSACTION_TOPIC
from barnabas.protocol.topic_partition import TopicPartition


class _Found(NamedTuple):
    """An open transaction in one partition, with its coordinator's decision if that is known."""

    directory: Path
    topic_partition: TopicPartition
    transaction: OpenTransaction
    decision: Decision | None

    @property
    def is_committed(self) -> bool:
        return self.decision is not None and self.decision.is_commit


def abort_transactions(
    directories: Sequence[Path], *, producer_id: int | None, without_asking: bool, dry_run: bool, as_json: bool
) -> int:
    """Abort open transactions of data directories or single partitions. Returns how many were left alone.

    `producer_id` None: all producers. Raises CommandFailure, click.Abort, OSError.
    """
    log_dirs = list(dict.fromkeys(data_directory_of(directory) for directory in directories))
    with ExitStack() as stack:
        for log_dir in log_dirs:
            stack.enter_context(held_lock(log_dir))
        found = _find(directories, log_dirs, producer_id)
        for each in found:
            print_line(_json(each) if as_json else _sentence(each))
        if found:
            _ensure_decisions_are_here(log_dirs)
        doomed = [each for each in found if not each.is_committed]
        if not found:
            print_note("no transaction is open")
        elif dry_run:
            print_note("dry run: nothing was changed")
        elif doomed:
            if not without_asking:
                confirm(f"Abort {counted(len(doomed), 'transaction')}?")
            _abort(doomed, log_dirs)
            print_note(f"{counted(len(doomed), 'transaction')} aborted")
        left = len(found) - len(doomed)
        if left:
            print_note(
                f"{counted(left, 'transaction')} left alone: the coordinator had committed. The next start of a broker "
                "on the directory writes the missing markers"
            )
        return left


def _find(directories: Sequence[Path], log_dirs: Sequence[Path], producer_id: int | None) -> list[_Found]:
    try:
        decisions = transaction_decisions(log_dirs)
    except DecodeError as error:
        raise CommandFailure(f"the coordinator's decisions cannot be read: {error}") from error
    found = []
    for directory in directories:
        for path in logs_of(directory):
            parsed = parse_directory_name(path.name)
            if parsed is None or path.name != directory_name(parsed.topic_partition):
                continue  # being deleted, a stray or a copy
            if parsed.topic_partition.topic == CLUSTER_METADATA_TOPIC:
                continue
            found += [
                _Found(path, parsed.topic_partition, transaction, decisions.get(transaction.producer_id))
                for transaction in open_transactions(path)
                if producer_id in (None, transaction.producer_id)
            ]
    return found


def _ensure_decisions_are_here(log_dirs: Sequence[Path]) -> None:
    """Raises CommandFailure if a directory with the coordinator's decisions may be missing on the command line."""
    try:
        replayed = [replay_metadata_directory(log_dir / METADATA_DIRECTORY) for log_dir in log_dirs]
        properties = [read_meta_properties(log_dir) for log_dir in log_dirs]
    except MetadataError as error:
        raise CommandFailure(f"the coordinator's decisions are not known: {error}") from error
    image = next((each.image for each in replayed if each.exists), None)
    if image is None:
        if any(each is not None and each.version > 0 for each in properties):
            raise CommandFailure(
                "the metadata log is in none of these directories: name all of log.dirs, because the coordinator may "
                "have committed in another"
            )
        return
    topic = image.topics.get(TRANSACTION_TOPIC)
    for number in topic.partitions if topic is not None else ():
        name = directory_name(TopicPartition(TRANSACTION_TOPIC, number))
        if not any((log_dir / name).is_dir() for log_dir in log_dirs):
            raise CommandFailure(
                f"{name} is in none of these directories: name all of log.dirs, because the coordinator may have "
                "committed"
            )


def _abort(doomed: Sequence[_Found], log_dirs: Sequence[Path]) -> None:
    for log_dir in log_dirs:
        configs = LogConfigs(log_dir)
        here = [each for each in doomed if each.directory.parent == log_dir]
        if not here:
            continue
        with storage_failures():
            recovery_points, log_starts = DataDirectory(log_dir).read_checkpoints()
            with _marker_taken(log_dir) as is_clean:
                for directory in dict.fromkeys(each.directory for each in here):
                    transactions = [each.transaction for each in here if each.directory == directory]
                    topic_partition = next(each.topic_partition for each in here if each.directory == directory)
                    request = LoadRequest(
                        directory,
                        topic_partition,
                        configs.of(topic_partition.topic),
                        is_clean,
                        recovery_points.get(topic_partition, 0),
                        log_starts.get(topic_partition, 0),
                    )
                    _abort_in(request, transactions)


def _abort_in(request: LoadRequest, transactions: Sequence[OpenTransaction]) -> None:
    """Append the markers of one log and flush them. Raises CommandFailure, StorageError."""
    offline = OfflineServices.create()
    log = open_log(request, offline.services)
    try:
        for transaction in transactions:
            marker = EndMarker(False, max(transaction.coordinator_epoch, 0))
            end = TransactionEnd(transaction.producer_id, transaction.producer_epoch, marker, transaction_version=0)
            log.append_marker(end, leader_epoch=max(log.latest_leader_epoch, 0))
        log.flush()
    except BrokerError as error:
        raise CommandFailure(f"{request.directory}: {error.message}") from error
    finally:
        offline.tasks.run()
        log.close()


@contextmanager
def _marker_taken(log_dir: Path) -> Iterator[bool]:
    """Remove the clean-shutdown marker, and restore it if no exception occurs. Yields whether it was there."""
    marker = CleanShutdownMarker(log_dir)
    content = None
    with suppress(FileNotFoundError):
        content = marker.path.read_bytes()
    yield marker.take()
    if content is not None:
        write_durably(marker.path, content)


def _sentence(found: _Found) -> str:
    transaction = found.transaction
    who = "" if found.decision is None else f" of {found.decision.transactional_id} ({found.decision.status_name})"
    return (
        f"{found.topic_partition}: transaction{who} open since offset {transaction.first_offset}, "
        f"producer_id={transaction.producer_id} producer_epoch={transaction.producer_epoch}"
    )


def _json(found: _Found) -> str:
    decision = found.decision
    return json.dumps(
        {
            "topic": found.topic_partition.topic,
            "partition": found.topic_partition.partition,
            **found.transaction._asdict(),
            "transactional_id": None if decision is None else decision.transactional_id,
            "status": None if decision is None else decision.status_name,
        }
    )
