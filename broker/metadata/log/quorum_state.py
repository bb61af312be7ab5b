"""quorum-state in `__cluster_metadata-0/`: Kafka's record of its last election. Read, never written.

One line of JSON; of version 0 {"clusterId","leaderId","leaderEpoch","votedId","appliedOffset","currentVoters",
"data_version":0}, of version 1 {"leaderId","leaderEpoch","votedId","votedDirectoryId","data_version":1}.
A log whose epochs are all at or below `leaderEpoch` was last led by Kafka. When Barnabas continues above it, Kafka
adopts the log's epoch at its next start. Source: Kafka's FileQuorumStateStore and QuorumState.initialize.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.metadata.errors import MetadataError

FILE_NAME = "quorum-state"
NO_EPOCH = -1
_NEWEST_EPOCH = 2**31 - 1


def read_quorum_epoch(metadata_directory: Path) -> int:
    """Return Kafka's last leader epoch, -1 without the file. Raises MetadataError for a file without an epoch."""
    path = metadata_directory / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return NO_EPOCH
    except (OSError, UnicodeDecodeError) as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error
    import json  # late: only Kafka writes this file

    try:
        epoch = json.loads(text)["leaderEpoch"]
    except (ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"{path} has no leaderEpoch: {error!r}; Kafka would not start on it either") from error
    if not isinstance(epoch, int):
        raise MetadataError(f"{path} has the leaderEpoch {epoch!r}, which is not a number")
    if not NO_EPOCH <= epoch < _NEWEST_EPOCH:
        raise MetadataError(f"{path} has the leaderEpoch {epoch}, which no other can follow")
    return epoch
