"""Problems of a log directory that holds data and does not say whose: its meta.properties is missing, damaged or cut.

A new identity would make another cluster of the same records: clients that compare the cluster id (mirrors, standbys,
sinks) would not know them any more. So a start refuses, as Kafka does, and the remedy names what is known from the
other directories and the metadata log: the operator decides.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from barnabas.broker.metadata.directories.meta_properties import DEFAULT_NODE_ID, FILE_NAME, meta_properties_lines
from barnabas.broker.metadata.directories.report import BARNABAS, WRITERS, LogDirectoryReport, Problem
from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.metadata.partition_state import RESERVED_DIRECTORIES_BELOW
from barnabas.protocol.uuids import random_uuid, uuid_text


def identity_problems(
    directories: Sequence[LogDirectoryReport],
    faulty: Sequence[LogDirectoryReport],
    image: MetadataImage,
    configured_node_id: int | None,
) -> Iterator[Problem]:
    """Yield a problem for each faulty directory, and for each that has lost the id which the metadata log names."""
    known = [each.properties for each in directories if each.properties is not None]
    ids = {each.directory_id for each in known}
    cluster_id = next((each.cluster_id for each in known if each.cluster_id), None)
    node_id = next((each.node_id for each in known if each.node_id is not None), configured_node_id)
    if node_id is None:
        node_id = _sole_replica(image)
    for directory in directories:
        named = _directory_id(directory, image, ids)
        if directory in faulty:
            assert directory.fault is not None, "a faulty directory has a fault"
            lines = meta_properties_lines(node_id, cluster_id or uuid_text(random_uuid()), named)
            which = "" if cluster_id else ", with the id of the cluster; if nobody knows it, with a new one as here"
            command = f"printf '%s\\n' {shlex.join(lines)} > {shlex.quote(str(directory.path / FILE_NAME))}"
            yield Problem(
                "identity", directory.fault, f"restore the file, or write it again{which}: {command}", WRITERS
            )
        elif directory.properties is not None and directory.properties.directory_id is None and named is not None:
            sentence = (
                f"{directory.path / FILE_NAME} has no directory.id, but the metadata log has {uuid_text(named)} for "
                "the partitions in it"
            )
            remedy = f"restore the file, or add the line directory.id={uuid_text(named)}"
            yield Problem("identity", sentence, remedy, frozenset({BARNABAS}))


def _directory_id(directory: LogDirectoryReport, image: MetadataImage, known: set[bytes | None]) -> bytes | None:
    """Return the id that the metadata log has for the directory's partitions."""
    states = (image.partition(*topic_partition) for topic_partition in directory.partitions)
    found = Counter(each for state in states if state is not None for each in state.directories)
    ids = (each for each, _ in found.most_common() if int.from_bytes(each, "big") >= RESERVED_DIRECTORIES_BELOW)
    return next((each for each in ids if each not in known), None)


def _sole_replica(image: MetadataImage) -> int:
    """Return the node of the first partition, which has all of them."""
    states = (state for topic in image.topics.values() for state in topic.partitions.values())
    return next((state.replicas[0] for state in states if state.replicas), DEFAULT_NODE_ID)
