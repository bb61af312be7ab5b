"""The opening of a standby's directories: what is copied into, and how its logs are loaded. Both block."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.broker.metadata.directories.reconcile import is_stray, reconcile_logs
from barnabas.broker.metadata.directories.standby_state import Role, StandbyState, read_state
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.broker.metadata.log.metadata_log import open_metadata_log
from barnabas.broker.metadata.log.snapshot_file import RaftState
from barnabas.broker.standby.metadata_copy import MetadataCopy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.standby.replica_logs import ReplicaLogs
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.config import BrokerConfig


class OpenedMetadata(NamedTuple):
    """The copied metadata, and what its snapshots need."""

    state: StandbyState
    copy: MetadataCopy
    raft: RaftState
    unsnapped_bytes: int
    node_id: int


def open_metadata(config: BrokerConfig, log_manager: LogManager) -> OpenedMetadata:
    """Lock the directories and open the metadata log; one that cannot be trusted is dropped.

    Raises MetadataError, StorageError, OSError.
    """
    directory = config.metadata_log_dir
    log_manager.open_directories()
    state = read_state(directory)
    if state.role is not Role.STANDBY:
        raise MetadataError(f"{directory} is not a standby's: its role is {state.role}")
    if not state.is_verified:
        shutil.rmtree(directory / METADATA_DIRECTORY, ignore_errors=True)
    replayed = replay_metadata_directory(directory / METADATA_DIRECTORY)
    properties = read_meta_properties(directory)
    if properties is None or properties.node_id is None:
        raise MetadataError(f"{directory} has no meta.properties")
    log = open_metadata_log(log_manager, replayed, config.log_config)
    raft = RaftState(replayed.kraft_version, replayed.voters)
    return OpenedMetadata(state, MetadataCopy(log, replayed), raft, replayed.unsnapped_bytes, properties.node_id)


def directory_ids(log_manager: LogManager) -> dict[Path, bytes]:
    """Return the ids of the log directories that can be used."""
    found = {path: read_meta_properties(path) for path in log_manager.live_directories}
    return {
        path: properties.directory_id
        for path, properties in found.items()
        if properties is not None and properties.directory_id is not None
    }


def load_logs(
    log_manager: LogManager,
    logs: ReplicaLogs,
    image: MetadataImage,
    live: LiveConfig,
    ids: Mapping[Path, bytes],
) -> None:
    """Load the logs of `image`, create those that are missing, set aside the others, and start the background work."""
    log_manager.load_logs(live.log_config, lambda found: is_stray(image, found.topic_partition, found.topic_id))
    logs.change_logs(MetadataImage(), image)
    reconcile_logs(image, log_manager, ids)
    log_manager.start_tasks()
