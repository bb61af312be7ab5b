"""Values that several properties decide together, and checks of their combinations.

Every refusal names each property with its value and origin. Source of the rules: Kafka's KafkaConfig.validateValues and
LogConfig.validateValues; comments give the reasons of our own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.config import listeners as addresses
from barnabas.config.errors import CombinationError, ConfigError
from barnabas.config.listeners import BadListenerError, Listener
from barnabas.config.property import PropertyType
from barnabas.config.property_values import PropertyValues
from barnabas.config.tables.log_properties import SERVED_INDEX_BYTES_MIN
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import ConfigSource

MEBIBYTE = 1 << 20


def node_id(values: PropertyValues) -> int | None:
    """Return node.id, else broker.id, else None. Raises ConfigError if both are set and differ."""
    newer = values.get("node.id")
    older = values.get_int("broker.id")
    if older < 0:
        return newer if isinstance(newer, int) else None
    if newer is not None and newer != older:
        raise ConfigError(f"{values.setting('node.id')} and {values.setting('broker.id')}: they must be equal")
    return older


def directories(values: PropertyValues) -> tuple[tuple[Path, ...], Path]:
    """Return the data directories and the metadata log's, absolute. Raises ConfigError.

    Equal or nested directories are refused: a directory inside a data directory must be a partition.
    """
    name = "log.dirs" if values.get("log.dirs") is not None else "log.dir"
    # Real paths detect duplicates; messages show the paths as given.
    seen: dict[str, str] = {}
    paths = []
    for text in values.get_list(name):
        real = os.path.realpath(text)
        if real in seen:
            raise ConfigError(f"{values.setting(name)}: {text} and {seen[real]} are the same directory")
        seen[real] = text
        paths.append(Path(os.path.abspath(text)))
    metadata = values.get("metadata.log.dir")
    if isinstance(metadata, str) and metadata:
        seen.setdefault(os.path.realpath(metadata), metadata)
    for inner, inner_text in seen.items():
        for outer, outer_text in seen.items():
            if inner.startswith(outer.rstrip(os.sep) + os.sep) and inner != outer:
                where = values.setting("metadata.log.dir" if metadata in (inner_text, outer_text) else name)
                raise ConfigError(f"{where}: {inner_text} is inside {outer_text}")
    return tuple(paths), Path(os.path.abspath(metadata)) if isinstance(metadata, str) and metadata else paths[0]


def client_listeners(
    values: PropertyValues,
) -> tuple[tuple[Listener, ...], Mapping[str, Listener], Mapping[str, str]]:
    """Return the listeners to open, the addresses to advertise and the protocols by name. Raises ConfigError."""
    controllers = {name.upper() for name in values.get_list("controller.listener.names")}
    with_source = values.setting
    try:
        everything = addresses.parse_listeners(values.get_list("listeners"))
        addresses.ensure_distinct_ports(everything)
    except BadListenerError as error:
        raise ConfigError(f"{with_source('listeners')}: {error}") from None
    opened = tuple(each for each in everything if each.name not in controllers)
    if not opened:
        raise ConfigError(
            f"{with_source('listeners')}: none is left for clients; see {with_source('controller.listener.names')}"
        )
    try:
        protocols = addresses.parse_protocol_map(values.get_str("listener.security.protocol.map"))
    except BadListenerError as error:
        raise ConfigError(f"{with_source('listener.security.protocol.map')}: {error}") from None
    try:
        protocols = addresses.security_protocols(opened, protocols)
    except BadListenerError as error:
        raise ConfigError(f"{with_source('listeners')}: {error}") from None
    advertised: list[Listener] | None = None
    try:
        if values.get("advertised.listeners") is not None:
            given = addresses.parse_listeners(values.get_list("advertised.listeners"))
            advertised = [each for each in given if each.name not in controllers]
        return opened, addresses.advertise(opened, advertised), protocols
    except BadListenerError as error:
        raise ConfigError(f"{with_source('advertised.listeners')}: {error}") from None


def metrics_listener(values: PropertyValues, opened: tuple[Listener, ...]) -> Listener | None:
    """Return the metrics listener, if unset on a free port like a client listener's. Raises ConfigError."""
    text = values.get_str("metrics.listener")
    if not text:
        return None
    try:
        listener = addresses.parse_listener(text)
        if listener.name not in (addresses.PLAINTEXT, addresses.SSL):
            raise BadListenerError(f"{listener.name} is neither PLAINTEXT nor SSL, the protocols of metrics")
        if not values.is_set("metrics.listener") and any(each.port == 0 for each in opened):
            listener = Listener(listener.name, listener.host, 0)
        # Only the ports matter here.
        addresses.ensure_distinct_ports((*opened, listener))
    except BadListenerError as error:
        raise ConfigError(f"{values.setting('metrics.listener')}: {error}") from None
    return listener


def console_listener(values: PropertyValues) -> Listener | None:
    """Return the console's address, None without a console. Raises ConfigError."""
    text = values.get_str("console.listener")
    if not text:
        return None
    try:
        listener = addresses.parse_listener(text)
        if listener.name != addresses.PLAINTEXT:
            raise BadListenerError(f"{text} has a name, and the console's address is host:port")
        if not listener.host:
            raise BadListenerError(f"{text} has no host; 0.0.0.0 is every interface")
    except BadListenerError as error:
        raise ConfigError(f"{values.setting('console.listener')}: {error}") from None
    return listener


def ensure_possible(values: PropertyValues) -> None:
    """Refuse combinations that cannot work. Raises ConfigError: CombinationError if dynamic values may take part."""
    retention = TOPIC_PROPERTIES["retention.ms"]
    if values.topic_default(retention).value == 0:
        name = next(each.name for each in retention.synonyms if values.get(each.name) is not None)
        raise CombinationError(
            f"{values.setting(name)}: the broker's retention cannot be 0 (negative is forever; a topic's may be 0)",
            name,
        )
    lowest, highest = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    if values.get_int(lowest) > values.get_int(highest):
        raise CombinationError(f"{values.setting(lowest)} is above {values.setting(highest)}", lowest, highest)
    buffer, threads = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"
    if values.get_int(buffer) // values.get_int(threads) <= MEBIBYTE:
        raise CombinationError(
            f"{values.setting(buffer)} over {values.setting(threads)}: each thread must get more than {MEBIBYTE} bytes",
            buffer,
            threads,
        )
    for name in ("log.cleaner.io.max.bytes.per.second", "log.cleaner.io.buffer.load.factor"):
        if not values.get_float(name) > 0:  # so is NaN
            raise CombinationError(f"{values.setting(name)}: it must be above 0, or no log would ever be clean", name)
    delay, idle = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
    if 0 <= values.get_int(idle) <= values.get_int(delay):
        raise ConfigError(
            f"{values.setting(delay)} must be less than {values.setting(idle)}, or connections would be closed as idle "
            "before a failed authentication is answered"
        )
    if 0 < values.get_int("queued.max.request.bytes") < values.get_int("socket.request.max.bytes"):
        raise ConfigError(
            f"{values.setting('queued.max.request.bytes')} must be at least "
            f"{values.setting('socket.request.max.bytes')}"
        )
    if "broker" not in values.get_list("process.roles"):
        raise ConfigError(
            f"{values.setting('process.roles')}: Barnabas is a broker that is its own controller; it cannot run as a "
            "controller alone"
        )


def warnings(values: PropertyValues, opened: tuple[Listener, ...]) -> Iterator[str]:
    """Yield sentences about legal settings with an effect that may surprise."""
    yield from _unserved(values)
    yield from _shadowed(values)
    yield from _repeated(values)
    if values.get_int("min.insync.replicas") > 1:
        yield (
            f"{values.setting('min.insync.replicas')}: Barnabas is one node, so acks=all is answered "
            "NOT_ENOUGH_REPLICAS (19) by every topic that does not set it to 1"
        )
    if values.get_int("default.replication.factor") > 1:
        yield f"{values.setting('default.replication.factor')}: Barnabas is one node, a topic gets one replica"
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if len(values.get_list(name)) > 1:
            yield f"{values.setting(name)}: Barnabas is a single node and does not join a quorum"
    if values.get("advertised.listeners") is None:
        for listener in opened:
            if listener.is_every_interface:
                yield (
                    f"{listener} is open on every interface and advertised.listeners is not set: each client is told "
                    "the address at which it reached the broker, which is wrong with address translation"
                )
    if values.is_set("message.max.bytes") or values.is_set("socket.request.max.bytes"):
        if values.get_int("message.max.bytes") > values.get_int("socket.request.max.bytes"):
            yield (
                f"{values.setting('message.max.bytes')} is above {values.setting('socket.request.max.bytes')}: "
                "a request with a batch of that size is never read"
            )
    if not values.get_bool("log.cleaner.enable") and "compact" in values.get_list("log.cleanup.policy"):
        yield f"{values.setting('log.cleaner.enable')} with {values.setting('log.cleanup.policy')}: logs only grow"
    index_bytes, interval = values.get_int("log.index.size.max.bytes"), values.get_int("log.index.interval.bytes")
    full = segment_bytes_at_full_index(index_bytes, interval)
    if full < values.get_int("log.segment.bytes"):
        yield (
            f"{values.setting('log.segment.bytes')}: with {values.setting('log.index.size.max.bytes')} and "
            f"{values.setting('log.index.interval.bytes')} the indexes are full first, after about {full} bytes"
        )


def segment_bytes_at_full_index(index_bytes: int, interval_bytes: int) -> int:
    """Estimate the bytes that a segment holds when its first index is full.

    The offset index has 8-byte entries, the time index 12-byte ones, of which the last is reserved for the roll. With
    an interval of 0 every batch has an entry, and no batch is smaller than its 61-byte header.
    """
    index_bytes = max(index_bytes, SERVED_INDEX_BYTES_MIN)
    entries = min(index_bytes // 8, index_bytes // 12 - 1)
    return entries * max(interval_bytes, 61)


def _unserved(values: PropertyValues) -> Iterator[str]:
    if not values.unserved:
        return
    from barnabas.config.tables import unserved

    guards: list[str] = []
    others: list[str] = []
    for name, value in values.unserved.items():
        if not unserved.is_harmless(name, str(value.value)):
            (guards if unserved.is_security(name) else others).append(f"{name} in {value.origin}")
    if guards:
        yield "security properties that Barnabas does not serve, without effect: " + ", ".join(guards)
    if others:
        yield "properties of Apache Kafka that Barnabas does not serve, without effect: " + ", ".join(others)


def _repeated(values: PropertyValues) -> Iterator[str]:
    """Yield the lists with an entry that counts once, as Kafka warns about them."""
    for known, value in values.describe():
        if known.type is PropertyType.LIST and not value.is_default and value.text is not None:
            for entry in known.repeated(value.text):
                yield f"{values.setting(known.name)}: names {entry} more than once, which counts once"


def _shadowed(values: PropertyValues) -> Iterator[str]:
    """Yield coarser units that lost to a finer one with a different value."""
    for topic_property in TOPIC_PROPERTIES.values():
        if topic_property.name == "flush.ms" or len(topic_property.synonyms) < 2:
            continue
        effective = values.topic_default(topic_property)
        if effective.source is not ConfigSource.STATIC_BROKER_CONFIG:
            continue
        winner = next(each for each in topic_property.synonyms if values.get(each.name) is not None)
        for synonym in topic_property.synonyms[topic_property.synonyms.index(winner) + 1 :]:
            value = values.get(synonym.name)
            if values.is_set(synonym.name) and isinstance(value, int) and value * synonym.factor != effective.value:
                yield f"{values.setting(synonym.name)} has no effect: {values.setting(winner.name)} wins everywhere"
