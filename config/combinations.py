"""What several properties decide together, and which of their combinations are impossible or worth a word.

Every refusal names each property with its value and source. Source of the rules: Kafka's KafkaConfig.validateValues and
LogConfig.validateValues; what is ours says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.config import listeners as addresses
from barnabas.config.errors import ConfigError
from barnabas.config.listeners import BadListenerError, Listener
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource

if TYPE_CHECKING:
    from barnabas.config.broker_config import BrokerConfig

MEBIBYTE = 1 << 20


def node_id(config: BrokerConfig) -> int | None:
    """node.id, else broker.id, else None. Raises ConfigError when both are set and differ."""
    newer = config.get("node.id")
    older = config.get_int("broker.id")
    if older < 0:
        return newer if isinstance(newer, int) else None
    if newer is not None and newer != older:
        raise ConfigError(f"{config.setting('node.id')} and {config.setting('broker.id')}: they must be equal")
    return older


def directories(config: BrokerConfig) -> tuple[tuple[Path, ...], Path]:
    """The data directories and that of the metadata log, absolute. Raises ConfigError.

    Two that are the same, or one inside another, are refused: a directory in a data directory must be a partition.
    """
    name = "log.dirs" if config.get("log.dirs") is not None else "log.dir"
    # The real path tells that two are one; the path as given is the one that people know.
    seen: dict[str, str] = {}
    paths = []
    for text in config.get_list(name):
        real = os.path.realpath(text)
        if real in seen:
            raise ConfigError(f"{config.setting(name)}: {text} and {seen[real]} are the same directory")
        seen[real] = text
        paths.append(Path(os.path.abspath(text)))
    metadata = config.get("metadata.log.dir")
    if isinstance(metadata, str) and metadata:
        seen.setdefault(os.path.realpath(metadata), metadata)
    for inner, inner_text in seen.items():
        for outer, outer_text in seen.items():
            if inner.startswith(outer.rstrip(os.sep) + os.sep) and inner != outer:
                where = config.setting("metadata.log.dir" if metadata in (inner_text, outer_text) else name)
                raise ConfigError(f"{where}: {inner_text} lies inside {outer_text}")
    return tuple(paths), Path(os.path.abspath(metadata)) if isinstance(metadata, str) and metadata else paths[0]


def client_listeners(config: BrokerConfig) -> tuple[tuple[Listener, ...], Mapping[str, Listener]]:
    """The listeners to open and what their clients are told. Raises ConfigError."""
    controllers = {name.upper() for name in config.get_list("controller.listener.names")}
    with_source = config.setting
    try:
        everything = addresses.parse_listeners(config.get_list("listeners"))
        addresses.ensure_distinct_ports(everything)
    except BadListenerError as error:
        raise ConfigError(f"{with_source('listeners')}: {error}") from None
    opened = tuple(each for each in everything if each.name not in controllers)
    if not opened:
        raise ConfigError(
            f"{with_source('listeners')}: none is left for clients; see {with_source('controller.listener.names')}"
        )
    try:
        protocols = addresses.parse_protocol_map(config.get_str("listener.security.protocol.map"))
    except BadListenerError as error:
        raise ConfigError(f"{with_source('listener.security.protocol.map')}: {error}") from None
    try:
        addresses.ensure_plaintext(opened, protocols)
    except BadListenerError as error:
        raise ConfigError(f"{with_source('listeners')}: {error}") from None
    advertised: list[Listener] | None = None
    try:
        if config.get("advertised.listeners") is not None:
            given = addresses.parse_listeners(config.get_list("advertised.listeners"))
            advertised = [each for each in given if each.name not in controllers]
        return opened, addresses.advertise(opened, advertised)
    except BadListenerError as error:
        raise ConfigError(f"{with_source('advertised.listeners')}: {error}") from None


def metrics_listener(config: BrokerConfig, opened: tuple[Listener, ...]) -> Listener | None:
    """Where metrics are served; while unset, on a free port when a client listener takes one. Raises ConfigError."""
    text = config.get_str("metrics.listener")
    if not text:
        return None
    try:
        listener = addresses.parse_listener(text)
        if not config.is_set("metrics.listener") and any(each.port == 0 for each in opened):
            listener = Listener(listener.name, listener.host, 0)
        # Names do not matter here; ports do.
        addresses.ensure_distinct_ports((*opened, listener))
    except BadListenerError as error:
        raise ConfigError(f"{config.setting('metrics.listener')}: {error}") from None
    return listener


def ensure_possible(config: BrokerConfig) -> None:
    """Refuses combinations that cannot work. Raises ConfigError."""
    retention = TOPIC_PROPERTIES["retention.ms"]
    if config.topic_default(retention).value == 0:
        name = next(each.name for each in retention.synonyms if config.get(each.name) is not None)
        raise ConfigError(
            f"{config.setting(name)}: the broker's retention cannot be 0 (negative is for ever; a topic's may be 0)"
        )
    if config.get_int("log.cleaner.min.compaction.lag.ms") > config.get_int("log.cleaner.max.compaction.lag.ms"):
        raise ConfigError(
            f"{config.setting('log.cleaner.min.compaction.lag.ms')} is above "
            f"{config.setting('log.cleaner.max.compaction.lag.ms')}"
        )
    share = config.get_int("log.cleaner.dedupe.buffer.size") // config.get_int("log.cleaner.threads")
    if share <= MEBIBYTE:
        raise ConfigError(
            f"{config.setting('log.cleaner.dedupe.buffer.size')} over {config.setting('log.cleaner.threads')}: "
            f"each thread must get more than {MEBIBYTE} bytes"
        )
    for name in ("log.cleaner.io.max.bytes.per.second", "log.cleaner.io.buffer.load.factor"):
        if not config.get_float(name) > 0:  # so is NaN
            raise ConfigError(f"{config.setting(name)}: it must be above 0, or no log would ever be clean")
    if "broker" not in config.get_list("process.roles"):
        raise ConfigError(
            f"{config.setting('process.roles')}: Barnabas is a broker that is its own controller; it cannot run as a "
            "controller alone"
        )


def warnings(config: BrokerConfig) -> Iterator[str]:
    """Sentences about legal settings that people should know of."""
    yield from _unserved(config)
    yield from _shadowed(config)
    if config.get_int("min.insync.replicas") > 1:
        yield (
            f"{config.setting('min.insync.replicas')}: Barnabas is one node, so acks=all is answered "
            "NOT_ENOUGH_REPLICAS (19) by every topic that does not set it to 1"
        )
    if config.get_int("default.replication.factor") > 1:
        yield f"{config.setting('default.replication.factor')}: Barnabas is one node, a topic gets one replica"
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if len(config.get_list(name)) > 1:
            yield f"{config.setting(name)}: Barnabas runs alone and takes no part in a quorum"
    if config.get("advertised.listeners") is None:
        for listener in config.listeners:
            if listener.is_every_interface:
                yield (
                    f"{listener} is open on every interface and advertised.listeners is not set: each client is told "
                    "the address at which it reached the broker, which is wrong behind address translation"
                )
    if config.is_set("message.max.bytes") or config.is_set("socket.request.max.bytes"):
        if config.get_int("message.max.bytes") > config.get_int("socket.request.max.bytes"):
            yield (
                f"{config.setting('message.max.bytes')} is above {config.setting('socket.request.max.bytes')}: "
                "a request with such a batch is never read"
            )
    if not config.get_bool("log.cleaner.enable") and "compact" in config.get_list("log.cleanup.policy"):
        yield f"{config.setting('log.cleaner.enable')} with {config.setting('log.cleanup.policy')}: logs only grow"
    index_bytes, interval = config.get_int("log.index.size.max.bytes"), config.get_int("log.index.interval.bytes")
    full = segment_bytes_at_full_index(index_bytes, interval)
    if full < config.get_int("log.segment.bytes"):
        yield (
            f"{config.setting('log.segment.bytes')}: with {config.setting('log.index.size.max.bytes')} and "
            f"{config.setting('log.index.interval.bytes')} the indexes are full first, after about {full} bytes"
        )


def segment_bytes_at_full_index(index_bytes: int, interval_bytes: int) -> int:
    """About how many bytes a segment holds when its first index is full.

    The offset index has 8-byte entries, the time index 12-byte ones, of which the last is kept for the roll. With an
    interval of 0 every batch has an entry, and no batch is smaller than its 61-byte header.
    """
    entries = min(index_bytes // 8, index_bytes // 12 - 1)
    return entries * max(interval_bytes, 61)


def _unserved(config: BrokerConfig) -> Iterator[str]:
    if not config.unserved:
        return
    from barnabas.config.tables import unserved

    guards: list[str] = []
    others: list[str] = []
    for name, value in config.unserved.items():
        if not unserved.is_harmless(name, str(value.value)):
            (guards if unserved.is_security(name) else others).append(f"{name} in {value.origin}")
    if guards:
        yield (
            "not served and without effect: "
            + ", ".join(guards)
            + "; Barnabas does not encrypt, authenticate or authorize: whoever reaches a listener may do everything"
        )
    if others:
        yield "properties of Apache Kafka that Barnabas does not serve, without effect: " + ", ".join(others)


def _shadowed(config: BrokerConfig) -> Iterator[str]:
    """A coarser unit that lost to a finer one and says something else."""
    for topic_property in TOPIC_PROPERTIES.values():
        if topic_property.name == "flush.ms" or len(topic_property.synonyms) < 2:
            continue
        effective = config.topic_default(topic_property)
        if effective.source is not ConfigSource.STATIC_BROKER_CONFIG:
            continue
        winner = next(each for each in topic_property.synonyms if config.get(each.name) is not None)
        for synonym in topic_property.synonyms[topic_property.synonyms.index(winner) + 1 :]:
            value = config.get(synonym.name)
            if config.is_set(synonym.name) and isinstance(value, int) and value * synonym.factor != effective.value:
                yield f"{config.setting(synonym.name)} has no effect: {config.setting(winner.name)} wins everywhere"
