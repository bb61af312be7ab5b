"""Directories that released versions have written, and what was in them.

    python -m tests.upgrade.fixtures      write the one of this version: data/<version>.tar.gz and .json

One is written at each release, and kept: every later version must open it. The directory has topics in all codecs, a
compacted one, committed, aborted and open transactions, committed offsets, a user, an ACL, a quota, and a mirror.
"""

from __future__ import annotations

import asyncio
import json
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from barnabas import Admin, AdminConfig, Producer, ProducerConfig, __version__
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.log_replay import replay_metadata_directory
from barnabas.broker.metadata.plan import Plan
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.records import ConsumerRecord
from barnabas.commands.doctor.directory import DirectoryDoctor
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon
from tests.support.mirrored_topics import add_mirror, broker_config
from tests.support.storage.metadata_store import Opened
from tests.support.storage.security_records import acl_record, quota_record, scram_record
from tests.support.topics import read_committed_topic

DATA = Path(__file__).with_name("data")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.dedupe.buffer.size": 4 << 20,
    "log.index.size.max.bytes": 4096,
    "log.retention.ms": -1,
    "offsets.retention.minutes": 2**31 - 1,
    "transactional.id.expiration.ms": 2**31 - 1,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Nothing expires, however old the directory is."""
TOPICS = {**{f"codec-{codec}": 2 for codec in CODECS}, "compacted": 1, "accounts": 2}
GROUP = "readers"


async def contents(bootstrap: str) -> dict[str, Any]:
    """Return the records and committed offsets of a broker that serves such a directory."""
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        offsets = await admin.group_offsets(GROUP)
    return {
        "records": {topic: _as_json(await read_committed_topic(bootstrap, topic, TOPICS[topic])) for topic in TOPICS},
        "offsets": {f"{topic}-{number}": found.offset for (topic, number), found in sorted(offsets.items())},
    }


def metadata(directory: Path) -> dict[str, Any]:
    """Return users, ACLs, quotas and mirrors of a stopped broker's directory."""
    image = replay_metadata_directory(directory / "__cluster_metadata-0").image
    doctor = DirectoryDoctor([directory], None).as_json()
    return {
        "topics": {name: topic.topic_id.hex() for name, topic in sorted(image.topics.items())},
        "configs": {"/".join(map(str, key)): dict(value) for key, value in sorted(image.configs.items())},
        **_security(image),
        "mirrors": doctor["mirrors"],
    }


def unpack(version: str, directory: Path) -> Path:
    """Unpack the directory of a version below `directory`; return its log directory."""
    with tarfile.open(DATA / f"{version}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "data"


def _security(image: MetadataImage) -> dict[str, Any]:
    return {
        "users": sorted(f"{name} {mechanism}" for name, mechanism in image.security.scram),
        "acls": sorted(map(str, image.security.acls.values())),
        "quotas": sorted(f"{entity} {dict(limits)}" for entity, limits in image.security.quotas.items()),
    }


def _as_json(records: list[ConsumerRecord]) -> list[list[Any]]:
    return [
        [each.partition, each.offset, each.timestamp, _text(each.key), _text(each.value)]
        for each in sorted(records, key=lambda record: (record.partition, record.offset))
    ]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


async def _fill(bootstrap: str) -> None:
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        for topic, partitions in TOPICS.items():
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"}
            await admin.create_topic(topic, partitions=partitions, configs=configs if topic == "compacted" else {})
        for codec in CODECS:
            async with Producer(ProducerConfig(bootstrap=bootstrap, compression=codec)) as producer:
                for number in range(12):
                    topic = f"codec-{codec}"
                    await producer.send(topic, b"value %d " % number * 20, key=b"key %d" % number, partition=number % 2)
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            for number in range(12):
                await producer.send_and_wait("compacted", b"value %d" % number, key=b"key %d" % (number % 3))
                await asyncio.sleep(0.02)  # the next one rolls
        for outcome in ("committed", "aborted", "open"):
            await _transaction(bootstrap, outcome)
        offsets = {TopicPartition("codec-none", number): CommittedOffset(number + 3) for number in range(2)}
        await admin.set_group_offsets(GROUP, offsets)
    until = time.monotonic() + 60
    while len(await read_committed_topic(bootstrap, "compacted", 1)) > 4:
        assert time.monotonic() < until, "nothing is compacted"
        await asyncio.sleep(0.1)


async def _transaction(bootstrap: str, outcome: str) -> None:
    producer = Producer(ProducerConfig(bootstrap=bootstrap, transactional_id=f"transfer-{outcome}"))
    await producer.start()
    await producer.begin_transaction()
    for number in range(2):
        await producer.send_and_wait("accounts", outcome.encode(), partition=number)
    if outcome == "committed":
        await producer.commit_transaction()
    elif outcome == "aborted":
        await producer.abort_transaction()
    if outcome != "open":
        await producer.close()  # which would abort it


def write(scratch: Path) -> None:
    """Write the fixture of this version."""
    with Daemon(scratch, SETTINGS) as daemon:
        asyncio.run(_fill(daemon.bootstrap))
    directory = daemon.data_directory
    add_mirror(broker_config(directory), "east", {"mirrored": 1})
    opened = Opened(broker_config(directory))
    opened.store.change(lambda _: Plan([], [acl_record(), quota_record(), scram_record()]))
    opened.close()
    with Daemon(scratch, SETTINGS) as daemon:
        found = asyncio.run(contents(daemon.bootstrap))
    (DATA / f"{__version__}.json").write_text(
        json.dumps({**found, **metadata(directory)}, indent=1, sort_keys=True) + "\n"
    )
    with tarfile.open(DATA / f"{__version__}.tar.gz", "w:gz") as archive:
        archive.add(directory, "data", filter=lambda each: None if each.name.endswith("/.lock") else each)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary))
