"""What becomes of a directory when `barnabas standby` starts: a standby, or an active broker.

a standby's                       goes on copying
promoting                         serves: it was killed while it took over
active, after a takeover from     serves, unless that broker has taken over since then (a higher number)
the broker that `--of` names
retired, or another broker's      becomes a standby if the active broker has the same cluster and a higher number (after
                                  a planned switch the same): its tail may be cut
empty                             becomes a standby with the active broker's identity
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties, write_meta_properties
from barnabas.broker.metadata.directories.standby_state import Role, StandbyState, read_state, write_state
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.bootstrap_checkpoint import FILE_NAME
from barnabas.broker.standby.active_broker import ActiveBroker
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ClientError
from barnabas.protocol.uuids import random_uuid

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.clients.config import ClientConfig
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.cluster.standby import StandbyIdentity

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0


class Course(Enum):
    """What to do with the directory."""

    COPY = "copy"
    SERVE = "serve"


async def prepare(config: BrokerConfig, client: ClientConfig, peer: str) -> Course:
    """Decide, and make the directory a standby's where it becomes one. `peer`: the active broker's address.

    Waits for the active broker where the decision needs it. Raises MetadataError, OSError; ClientError if the active
    broker refuses the login or the rights.
    """
    directory = config.metadata_log_dir
    state = read_state(directory)
    if state.role is Role.PROMOTING:
        return Course.SERVE
    if state.role is Role.STANDBY:
        if state.peer != peer:
            write_state(directory, StandbyState(Role.STANDBY, state.number, peer, state.is_verified))
        return Course.COPY
    has_taken_over = state.role is Role.ACTIVE and state.peer == peer
    identity = await _identify(client, waits=not has_taken_over)
    if has_taken_over and (identity is None or identity.number <= state.number):
        logger.info("this broker has taken over from %s, and serves: number=%d", peer, state.number)
        return Course.SERVE
    assert identity is not None, "waited for it"
    _become_standby(config, identity, state, peer)
    return Course.COPY


async def _identify(client: ClientConfig, *, waits: bool) -> StandbyIdentity | None:
    has_warned = False
    while True:
        try:
            active = await ActiveBroker.connect(client)
            try:
                return await active.identify()
            finally:
                active.close()
        except (BrokerConnectionError, BrokerTimeoutError) as error:
            if not waits:
                return None
            if not has_warned:
                has_warned = True
                logger.warning("waiting for the active broker: %s", error)
        except ClientError:
            if not waits:
                return None
            raise
        await asyncio.sleep(_RETRY_SECONDS)


def _become_standby(config: BrokerConfig, identity: StandbyIdentity, state: StandbyState, peer: str) -> None:
    directory = config.metadata_log_dir
    directories = [directory, *(each for each in config.log_dirs if each != directory)]
    properties = read_meta_properties(directory)
    if properties is None:
        _ensure_empty(directories)
        ids = (*identity.directory_ids[: len(directories)], *(random_uuid() for _ in directories))
        for path, directory_id in zip(directories, ids, strict=False):
            path.mkdir(parents=True, exist_ok=True)
            write_meta_properties(
                path, node_id=identity.node_id, cluster_id=identity.cluster_id, directory_id=directory_id
            )
        write_durably(directory / FILE_NAME, identity.bootstrap_checkpoint)
    else:
        if properties.cluster_id != identity.cluster_id:
            raise MetadataError(
                f"{directory} belongs to cluster {properties.cluster_id}, the broker at {peer} to {identity.cluster_id}"
            )
        lowest = state.number if state.role is Role.RETIRED else state.number + 1
        if identity.number < lowest:
            raise MetadataError(
                f"{directory} is a broker's, and the broker at {peer} has not taken over from it (its switch number is "
                f"{identity.number}, not {lowest}): give an empty directory, or the right address"
            )
        logger.warning(
            "%s becomes a standby of %s: records that the active broker does not have will be cut, and kept in files "
            "*.cut-*.log",
            directory,
            peer,
        )
    write_state(directory, StandbyState(Role.STANDBY, identity.number, peer, is_verified=False))


def _ensure_empty(directories: list[Path]) -> None:
    for path in directories:
        if path.is_dir() and any(each.is_dir() for each in path.iterdir()):
            raise MetadataError(f"{path} has no meta.properties, but is not empty: give an empty directory")
