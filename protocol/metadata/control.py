"""Control records of the metadata log and its snapshots: the state of Raft and of the snapshot files.

    key    int16 version 0, int16 type
    value  a flexible message that begins with its own int16 version

    type  record          fields after the version
    2     LeaderChange    leader id int32, voters []Voter, granting voters []Voter
                          Voter: id int32, directory id uuid (version 1 only)
    3     SnapshotHeader  last contained log timestamp int64 (ms)
    4     SnapshotFooter
    5     KRaftVersion    kraft version int16
    6     KRaftVoters     voters: id int32, directory id uuid, endpoints []{name, host, port uint16},
                          supported kraft versions min and max int16

Types 0 and 1 (abort, commit) belong to transactions of data logs. Other types are kept raw.
Source: Kafka's ControlRecordType, ControlRecordUtils and the JSON definitions in its kafka-clients jar.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each field's annotation at every start.

import struct
from typing import NamedTuple, Self, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader, Writer
from barnabas.protocol.uuids import ZERO_UUID

_KEY = struct.Struct(">hh")  # version, type
assert _KEY.size == 4

_KEY_VERSION = 0


class Voter(NamedTuple):
    """A voter of the metadata quorum; the directory id is zero in static quorums."""

    node_id: int
    directory_id: bytes = ZERO_UUID


class LeaderChange(NamedTuple):
    """Election of a leader: the first batch of its epoch."""

    leader_id: int
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]
    version: int = 0

    def encode(self) -> bytes:
        """Encode the record's value."""
        writer = Writer().int16(self.version).int32(self.leader_id)
        for voters in (self.voters, self.granting_voters):
            writer.compact_array_length(len(voters))
            for voter in voters:
                writer.int32(voter.node_id)
                if self.version >= 1:
                    writer.uuid(voter.directory_id)
                writer.tagged_fields()
        return writer.tagged_fields().to_bytes()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Decode the record's value. Raises DecodeError."""
        reader, version = _open(value, 1)
        leader_id = reader.int32()
        voters, granting = (
            tuple(_read_voter(reader, version) for _ in range(reader.compact_array_length())) for _ in range(2)
        )
        _end(reader)
        return cls(leader_id, voters, granting, version)


class SnapshotHeader(NamedTuple):
    """Start of a snapshot; `last_contained_log_timestamp` is the append time of the last record that it covers."""

    last_contained_log_timestamp: int

    def encode(self) -> bytes:
        """Encode the record's value."""
        return Writer().int16(0).int64(self.last_contained_log_timestamp).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Decode the record's value. Raises DecodeError."""
        reader, _ = _open(value, 0)
        header = cls(reader.int64())
        _end(reader)
        return header


class SnapshotFooter(NamedTuple):
    """End of a snapshot: without it the file is incomplete."""

    def encode(self) -> bytes:
        """Encode the record's value."""
        return Writer().int16(0).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Decode the record's value. Raises DecodeError."""
        reader, _ = _open(value, 0)
        _end(reader)
        return cls()


class KRaftVersion(NamedTuple):
    """0: the voters are in the configuration; 1: they are in the log."""

    level: int

    def encode(self) -> bytes:
        """Encode the record's value."""
        return Writer().int16(0).int16(self.level).tagged_fields().to_bytes()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Decode the record's value. Raises DecodeError."""
        reader, _ = _open(value, 0)
        record = cls(reader.int16())
        _end(reader)
        return record


class Endpoint(NamedTuple):
    """One address of a voter."""

    name: str
    host: str
    port: int


class KRaftVoter(NamedTuple):
    """A voter in the log; `supported` are its lowest and highest kraft version."""

    node_id: int
    directory_id: bytes
    endpoints: tuple[Endpoint, ...]
    supported: tuple[int, int]


class KRaftVoters(NamedTuple):
    """All voters of a dynamic quorum."""

    voters: tuple[KRaftVoter, ...]

    def encode(self) -> bytes:
        """Encode the record's value."""
        writer = Writer().int16(0).compact_array_length(len(self.voters))
        for voter in self.voters:
            writer.int32(voter.node_id).uuid(voter.directory_id).compact_array_length(len(voter.endpoints))
            for endpoint in voter.endpoints:
                writer.compact_string(endpoint.name).compact_string(endpoint.host).uint16(endpoint.port)
                writer.tagged_fields()
            writer.int16(voter.supported[0]).int16(voter.supported[1]).tagged_fields().tagged_fields()
        return writer.tagged_fields().to_bytes()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Decode the record's value. Raises DecodeError."""
        reader, _ = _open(value, 0)
        voters = tuple(_read_kraft_voter(reader) for _ in range(reader.compact_array_length()))
        _end(reader)
        return cls(voters)


class UnknownControl(NamedTuple):
    """A control record of an unknown type, kept unchanged."""

    type: int
    value: bytes


ServedControl: TypeAlias = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters
ControlRecord: TypeAlias = ServedControl | UnknownControl

_CLASSES: dict[int, type[ServedControl]] = {
    2: LeaderChange,
    3: SnapshotHeader,
    4: SnapshotFooter,
    5: KRaftVersion,
    6: KRaftVoters,
}
_TYPES = {record_class: control_type for control_type, record_class in _CLASSES.items()}


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Return key and value of the record in a control batch."""
    if isinstance(record, UnknownControl):
        return _KEY.pack(_KEY_VERSION, record.type), record.value
    return _KEY.pack(_KEY_VERSION, _TYPES[type(record)]), record.encode()


def decode_control(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Decode a control record. Raises DecodeError."""
    if key is None or len(key) < _KEY.size:
        raise DecodeError(f"control record key {key!r} is shorter than {_KEY.size} bytes")
    if value is None:
        raise DecodeError("control record has no value")
    version, control_type = _KEY.unpack_from(key)
    if version < _KEY_VERSION:
        raise DecodeError(f"control record key has version {version}")
    record_class = _CLASSES.get(control_type)
    return UnknownControl(control_type, value) if record_class is None else record_class.decode(value)


def _open(value: bytes, newest: int) -> tuple[Reader, int]:
    reader = Reader(value)
    version = reader.int16()
    if not 0 <= version <= newest:
        raise DecodeError(f"control record has version {version}, the newest known is {newest}")
    return reader, version


def _end(reader: Reader) -> None:
    reader.tagged_fields()
    reader.ensure_end()


def _read_voter(reader: Reader, version: int) -> Voter:
    voter = Voter(reader.int32(), reader.uuid() if version >= 1 else ZERO_UUID)
    reader.tagged_fields()
    return voter


def _read_kraft_voter(reader: Reader) -> KRaftVoter:
    node_id, directory_id = reader.int32(), reader.uuid()
    endpoints = []
    for _ in range(reader.compact_array_length()):
        endpoints.append(Endpoint(reader.compact_string(), reader.compact_string(), reader.uint16()))
        reader.tagged_fields()
    supported = (reader.int16(), reader.int16())
    reader.tagged_fields()  # of the range
    reader.tagged_fields()  # of the voter
    return KRaftVoter(node_id, directory_id, tuple(endpoints), supported)
