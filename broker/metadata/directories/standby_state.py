"""standby.json: the role of a log directory in a pair of active broker and standby. One file, in metadata.log.dir.

    {"number":3,"peer":"host:port","role":"standby","verified":true,"version":1}

role        standby    a copy that may be incomplete: `serve` refuses it
            promoting  a standby that takes over: the next start raises all leader epochs
            active     took over, or serves a standby
            retired    handed over to its standby in a planned switch: `serve` refuses it
number      how often a standby has taken over; the side with the higher number is right
peer        the active broker that a standby follows, or followed
verified    false: the directory was another broker's; its metadata log is copied again, and its partitions' batches are
            compared with the active broker's

A directory without the file belongs to a broker without a standby: active, number 0. Apache Kafka ignores the file.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.durable_files import write_durably

FILE_NAME: Final = "standby.json"
_VERSION: Final = 1


class Role(StrEnum):
    """What a directory is to its pair."""

    STANDBY = "standby"
    PROMOTING = "promoting"
    ACTIVE = "active"
    RETIRED = "retired"


class StandbyState(NamedTuple):
    """The content of the file."""

    role: Role = Role.ACTIVE
    number: int = 0
    peer: str | None = None
    is_verified: bool = True


def read_state(metadata_log_dir: Path) -> StandbyState:
    """Return the state of a directory. Raises MetadataError for an unreadable file."""
    path = metadata_log_dir / FILE_NAME
    try:
        content = path.read_bytes()
        import json  # here: most directories have no such file

        found = json.loads(content)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']!r} is not {_VERSION}")
        number, peer, verified = found["number"], found["peer"], found["verified"]
        if type(number) is not int or type(verified) is not bool or not (peer is None or type(peer) is str):
            raise ValueError("number, peer or verified has a wrong type")
        return StandbyState(Role(found["role"]), number, peer, verified)
    except FileNotFoundError:
        return StandbyState()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error


def write_state(metadata_log_dir: Path, state: StandbyState) -> None:
    """Write the state durably. Raises OSError."""
    import json

    content = {
        "version": _VERSION,
        "role": state.role.value,
        "number": state.number,
        "peer": state.peer,
        "verified": state.is_verified,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    write_durably(metadata_log_dir / FILE_NAME, f"{text}\n".encode())


def ensure_may_serve(metadata_log_dir: Path) -> StandbyState:
    """Return the state. Raises MetadataError for a directory that `serve` must not open."""
    state = read_state(metadata_log_dir)
    if state.role is Role.STANDBY:
        raise MetadataError(
            f"{metadata_log_dir} is a standby's copy of the broker at {state.peer}",
            remedy="promote the running standby with `barnabas standby promote`, or delete standby.json in it to serve "
            "what was copied",
        )
    if state.role is Role.RETIRED:
        raise MetadataError(
            f"{metadata_log_dir} was handed over to the standby in switch {state.number}",
            remedy="run it as the standby of the new active broker with `barnabas standby --of HOST:PORT`",
        )
    return state
