"""meta.properties: the node and cluster of a log directory. One file in each log directory, Java's properties format.

    version=1
    node.id=1
    cluster.id=<22 characters>      url-safe base64 of 16 bytes; others may have any text, in a file that ends with a
                                    newline: a text that was cut off is no id
    directory.id=<22 characters>    url-safe base64 of 16 bytes; missing in directories of Kafka before 3.7

Version 0, written with ZooKeeper, has broker.id instead of node.id and may lack both ids. All directories of a node
must agree on node and cluster; directory ids must differ. A file without a version was emptied or overwritten.
Source: Kafka's MetaProperties and MetaPropertiesEnsemble.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.partition_state import RESERVED_DIRECTORIES_BELOW
from barnabas.protocol.uuids import parse_uuid, random_uuid, uuid_text

FILE_NAME = "meta.properties"
NEWEST_VERSION = 1
DEFAULT_NODE_ID = 1
_UUID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")
_RESTORE = "restore the file, or write it again with version=1, node.id, cluster.id and directory.id"


class MetaProperties(NamedTuple):
    """The values of the file; None for missing ones."""

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: bytes | None


class NodeIdentity(NamedTuple):
    """The node's identity after all directories agreed. `zookeeper`: a file has version 0."""

    node_id: int
    cluster_id: str
    directory_ids: Mapping[Path, bytes]
    zookeeper: bool


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Read the file in `directory`, None without one. Raises MetadataError for an unusable file."""
    path = directory / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise MetadataError(f"{path} cannot be read: {error}", remedy=_RESTORE) from error
    properties = _parse(text)
    version = _integer(path, properties, "version")
    if version is None:
        raise MetadataError(f"{path} has no version: it is empty or damaged", remedy=_RESTORE)
    if version not in (0, NEWEST_VERSION):
        raise MetadataError(
            f"{path} has version {version}; this program reads versions 0 and {NEWEST_VERSION}", remedy=_RESTORE
        )
    cluster_id = properties.get("cluster.id")
    if cluster_id and not text.endswith("\n") and not _UUID_TEXT.fullmatch(cluster_id):
        raise MetadataError(f"{path} is cut off: its cluster.id {cluster_id!r} has not 22 characters", remedy=_RESTORE)
    directory_text = properties.get("directory.id")
    found = MetaProperties(
        version=version,
        node_id=_integer(path, properties, "broker.id" if version == 0 else "node.id"),
        cluster_id=cluster_id,
        directory_id=None if directory_text is None else _directory_id(path, directory_text),
    )
    if version >= 1 and (found.node_id is None or not found.cluster_id):
        missing = "node.id" if found.node_id is None else "cluster.id"
        raise MetadataError(f"{path} has no {missing}", remedy=_RESTORE)
    return found


def meta_properties_lines(node_id: int, cluster_id: str, directory_id: bytes | None) -> list[str]:
    """Return the lines of a file of version 1."""
    lines = [f"version={NEWEST_VERSION}", f"node.id={node_id}", f"cluster.id={_escape(cluster_id)}"]
    return lines if directory_id is None else [*lines, f"directory.id={uuid_text(directory_id)}"]


def write_meta_properties(directory: Path, *, node_id: int, cluster_id: str, directory_id: bytes) -> None:
    """Write a file of version 1, durably. Raises OSError."""
    lines = meta_properties_lines(node_id, cluster_id, directory_id)
    write_durably(directory / FILE_NAME, ("\n".join(lines) + "\n").encode("utf-8"))


def settle_identity(
    found: Mapping[Path, MetaProperties | None], configured_node_id: int | None
) -> tuple[NodeIdentity, list[Path]]:
    """Return the node's identity, and the directories whose file must be written (new, version 0, or without an id).

    `found` has the content of each directory's file, None without one: a new id is made for it. Raises MetadataError if
    the files contradict each other or `configured_node_id`.
    """
    node_id = _agreed_node_id(found, configured_node_id)
    cluster_id = _agreed_cluster_id(found)
    _refuse_shared_directory_ids(found)
    directory_ids = {
        directory: properties.directory_id if properties is not None and properties.directory_id else random_uuid()
        for directory, properties in found.items()
    }
    identity = NodeIdentity(
        node_id=node_id,
        cluster_id=cluster_id,
        directory_ids=directory_ids,
        zookeeper=any(properties is not None and properties.version == 0 for properties in found.values()),
    )
    outdated = [directory for directory, properties in found.items() if properties != _wanted(identity, directory)]
    return identity, outdated


def write_identity(identity: NodeIdentity, directories: Iterable[Path]) -> None:
    """Write the file of each of `directories`. Raises OSError."""
    for directory in directories:
        write_meta_properties(
            directory,
            node_id=identity.node_id,
            cluster_id=identity.cluster_id,
            directory_id=identity.directory_ids[directory],
        )


def _wanted(identity: NodeIdentity, directory: Path) -> MetaProperties:
    return MetaProperties(NEWEST_VERSION, identity.node_id, identity.cluster_id, identity.directory_ids[directory])


def _agreed_node_id(found: Mapping[Path, MetaProperties | None], configured: int | None) -> int:
    agreed: tuple[int, Path] | None = None
    for directory, properties in found.items():
        if properties is None or properties.node_id is None:
            continue
        path = directory / FILE_NAME
        if agreed is not None and agreed[0] != properties.node_id:
            raise MetadataError(
                f"{path} belongs to node {properties.node_id}, but {agreed[1]} to node {agreed[0]}: "
                "log.dirs names directories of two nodes"
            )
        agreed = (properties.node_id, path)
    if agreed is None:
        return DEFAULT_NODE_ID if configured is None else configured
    if configured is not None and configured != agreed[0]:
        raise MetadataError(
            f"node.id is {configured}, but {agreed[1]} belongs to node {agreed[0]}",
            remedy=f"leave node.id unset to adopt {agreed[0]}, or name another directory in log.dirs",
        )
    return agreed[0]


def _agreed_cluster_id(found: Mapping[Path, MetaProperties | None]) -> str:
    agreed: tuple[str, Path] | None = None
    for directory, properties in found.items():
        if properties is None or not properties.cluster_id:
            continue
        path = directory / FILE_NAME
        if agreed is not None and agreed[0] != properties.cluster_id:
            raise MetadataError(
                f"{path} belongs to cluster {properties.cluster_id}, but {agreed[1]} to cluster {agreed[0]}: "
                "log.dirs names directories of two clusters"
            )
        agreed = (properties.cluster_id, path)
    return uuid_text(random_uuid()) if agreed is None else agreed[0]


def _refuse_shared_directory_ids(found: Mapping[Path, MetaProperties | None]) -> None:
    seen: dict[bytes, Path] = {}
    for directory, properties in found.items():
        if properties is None or properties.directory_id is None:
            continue
        other = seen.setdefault(properties.directory_id, directory)
        if other != directory:
            raise MetadataError(
                f"{directory} and {other} have the same directory.id {uuid_text(properties.directory_id)}: "
                "one is a copy of the other"
            )


def _directory_id(path: Path, text: str) -> bytes:
    try:
        directory_id = parse_uuid(text)
    except DecodeError as error:
        raise MetadataError(f"{path} has an invalid directory.id: {error}", remedy=_RESTORE) from error
    if int.from_bytes(directory_id, "big") < RESERVED_DIRECTORIES_BELOW:
        raise MetadataError(f"{path} has the reserved directory.id {text}", remedy=_RESTORE)
    return directory_id


def _integer(path: Path, properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise MetadataError(f"{path} has {name}={text!r}, which is not a number", remedy=_RESTORE) from error


def _parse(text: str) -> dict[str, str]:
    """Parse Java's properties format without line continuations and control escapes, which these files lack."""
    properties: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        ends = [end for end in (stripped.find("="), stripped.find(":")) if end >= 0]
        end = min(ends, default=len(stripped))
        properties[stripped[:end].strip()] = _unescape(stripped[end + 1 :].strip())
    return properties


def _escape(value: str) -> str:
    return "".join("\\" + character if character in "\\:=#!" else character for character in value)


def _unescape(value: str) -> str:
    characters: list[str] = []
    escaped = False
    for character in value:
        if character == "\\" and not escaped:
            escaped = True
            continue
        characters.append(character)
        escaped = False
    return "".join(characters)
