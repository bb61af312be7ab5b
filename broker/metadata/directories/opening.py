"""The records that opening a data directory appends to its metadata log. Planned here, written by the store.

an open transaction                     AbortTransaction, so that our records do not become part of it
an empty log                            the records of bootstrap.checkpoint, or `metadata.version` 19 and the levels of
                                        initial.features; or `metadata.version` 19 and the topics that adopt.topics
                                        adopts
after an unclean stop, or after Kafka   every partition gets this node as leader with the next leader epoch
a topic of our own lacks configs        those of the list (own_topics)
a standby that takes over               every partition gets this node as leader with a leader epoch far above, and
                                        producer ids that the lost broker may have handed out are skipped
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.metadata.directories.adoption import (
    HELD_CONFIGS,
    PartitionDirectories,
    adoption_records,
    ensure_all_own_partitions,
)
from barnabas.broker.metadata.directories.leadership import leadership_records
from barnabas.broker.metadata.directories.meta_properties import NodeIdentity
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.bootstrap_checkpoint import feature_records, level_of
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, ReplayedLog
from barnabas.broker.metadata.producer_ids import skipped_ids_record
from barnabas.protocol.metadata.control import Voter
from barnabas.protocol.metadata.levels import INITIAL_LEVEL, METADATA_VERSION, has_transactions
from barnabas.protocol.metadata.records import AbortTransactionRecord, MetadataRecord
from barnabas.protocol.topic_name import INTERNAL_TOPICS
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig

FIRST_EPOCH = 1


class Opening(NamedTuple):
    """The first append after opening.

    features        the levels for bootstrap.checkpoint, if the directory has none
    leader_epoch    of our batches
    is_new_epoch    the epoch is new to the log: a LeaderChange begins it
    aborts          AbortTransaction comes before everything else
    records         the following records, in one change
    warnings        sentences for the operator
    """

    features: Mapping[str, int]
    leader_epoch: int
    is_new_epoch: bool
    aborts: bool
    records: list[MetadataRecord]
    warnings: list[str]

    @property
    def level(self) -> int:
        """`metadata.version` of the log."""
        return self.features[METADATA_VERSION]


def plan_opening(
    replayed: ReplayedLog,
    *,
    identity: NodeIdentity,
    bootstrap: Sequence[MetadataRecord] | None,
    found: PartitionDirectories,
    was_clean: bool,
    takes_over: bool = False,
    config: BrokerConfig,
) -> Opening:
    """Plan the opening. `found`, the partition directories, matter only for an empty log. Raises MetadataError.

    `takes_over`: the directory is a standby's copy, whose active broker may have written more in its epochs.
    `config` has the features of a new directory, in which no partition is found, and the configs of our own topics.
    """
    image = replayed.image
    records: list[MetadataRecord] = []
    warnings: list[str] = []
    level = image.level
    features = {} if level is None else {METADATA_VERSION: level}
    if level is None:
        features = {METADATA_VERSION: INITIAL_LEVEL, **({} if found else config.initial_features)}
        if bootstrap is not None:
            stored = level_of(bootstrap)
            assert stored is not None, "bootstrap records have a level"
            features = {METADATA_VERSION: stored}
        level = features[METADATA_VERSION]
        records += feature_records(features) if bootstrap is None else bootstrap
    if not replayed.exists and found:
        ensure_all_own_partitions(found, config)
        records += adoption_records(found, node_id=identity.node_id, directory_ids=identity.directory_ids)
        warnings.append(
            f"{next(iter(next(iter(found.values())).values())).parent} has no metadata log: its {len(found)} topics "
            "are adopted, and until their configs are set nothing is deleted or compacted in them ("
            f"{', '.join(f'{name}={text}' for name, text in HELD_CONFIGS.items())}; internal topics are compacted)"
        )
    opened = _with(image, records)
    if not INTERNAL_TOPICS.isdisjoint(opened.topics):
        from barnabas.broker.metadata.own_topics import config_warnings, missing_configs  # late: a new broker has none

        added = missing_configs(opened, config)
        records += added
        warnings += config_warnings(opened, added)
    changed = not was_clean or takes_over or replayed.led_by_kafka
    records += leadership_records(
        opened,
        identity.node_id,
        raise_epochs=changed and replayed.exists,
        takes_over=takes_over and replayed.exists,
    )
    if takes_over and replayed.exists:
        records.append(skipped_ids_record(image, node_id=identity.node_id))
    ensure_transaction_can_end(replayed, level)
    last_epoch = max(replayed.last_epoch, replayed.quorum_epoch, 0)
    return Opening(
        features=features,
        leader_epoch=last_epoch + 1 if changed or last_epoch < FIRST_EPOCH else last_epoch,
        is_new_epoch=changed or last_epoch < FIRST_EPOCH,
        aborts=replayed.in_transaction,
        records=records,
        warnings=warnings,
    )


def ensure_transaction_can_end(replayed: ReplayedLog, level: int) -> None:
    """Raise MetadataError if the log ends within a transaction that its level does not allow to abort."""
    if replayed.in_transaction and not has_transactions(level):
        raise MetadataError(
            f"the metadata log ends within a transaction, and metadata.version {level} has no transactions"
        )


def sole_voter(identity: NodeIdentity, replayed: ReplayedLog | None, metadata_log_dir: Path) -> Voter:
    """Return this node, the metadata log's only voter, with its directory id if the log holds the voters."""
    if replayed is None or not replayed.kraft_version:
        return Voter(identity.node_id)
    return Voter(identity.node_id, identity.directory_ids.get(metadata_log_dir, ZERO_UUID))


def abort_record() -> MetadataRecord:
    """Return the record that ends the open transaction."""
    return AbortTransactionRecord("opened by Barnabas")


def ensure_log_is_not_elsewhere(identity: NodeIdentity, metadata_log_dir: Path) -> None:
    """Raise MetadataError if another directory has the metadata log."""
    for directory in identity.directory_ids:
        if directory != metadata_log_dir and (directory / METADATA_DIRECTORY).is_dir():
            raise MetadataError(
                f"{metadata_log_dir} has no metadata log, but {directory} has one",
                remedy=f"set metadata.log.dir={directory}",
            )


def _with(image: MetadataImage, records: Sequence[MetadataRecord]) -> MetadataImage:
    builder = ImageBuilder(image)
    for record in records:
        builder.apply(record)
    return builder.build()
