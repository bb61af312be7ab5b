"""Benchmark of the authorizer: `python -m benchmarks.authorization`.

decision    CPU per decision: known to the session, of an unknown name among many ACLs, and as one of `allows`
produce     CPU per one-record Produce in Kafka's protocol, with and without an authorizer, in this process: the same
            broker, connection and topic, in alternating rounds, from the frame to the encoded response. No socket is
            part of it, so the authorizer's share is larger than for a client.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from barnabas.broker.authorization.authorizer import STANDARD_AUTHORIZER, Authorizer
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.session import Session
from barnabas.broker.node import Node
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.config import BrokerConfig
from barnabas.config.listeners import Listener
from barnabas.config.value import Setting
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.acls import Acl
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic
from benchmarks.requests.kafka_dialect import KafkaDialect
from benchmarks.requests.records import build_batch
from benchmarks.runs.result_files import add_json_option, write_result

VALUE_BYTES = 100
PRINCIPAL, HOST = "User:alice", "10.0.0.7"
WARM_UP = 2000


def acls(count: int) -> dict[bytes, Acl]:
    """Return ACLs of as many topics; the tenth part are prefixed, of five lengths."""
    found = {}
    for number in range(count):
        is_prefixed = number % 10 == 0
        name = f"{'p' * (number % 50 // 10 + 1)}{number}-" if is_prefixed else f"topic-{number}"
        pattern = PatternType.PREFIXED if is_prefixed else PatternType.LITERAL
        user = PRINCIPAL if number % 2 else "User:bob"
        acl = Acl(ResourceType.TOPIC, name, pattern, user, "*", Operation.WRITE, Permission.ALLOW)
        found[number.to_bytes(16, "big")] = acl
    return found


def measure_decisions(count: int, times: int) -> dict[str, float]:
    """Return microseconds of CPU by kind of decision."""
    authorizer = Authorizer()
    authorizer.replace(authorizer.prepare(acls(count)))
    access = authorizer.access_for(PRINCIPAL, HOST)
    write_topic, allows = access.write_topic, access.allows
    write, topic = Operation.WRITE, ResourceType.TOPIC

    def known() -> None:
        for _ in range(times):
            write_topic["topic-1"]

    def general() -> None:
        for _ in range(times):
            allows(write, topic, "topic-1", api=ApiKey.PRODUCE)

    names = [f"topic-{number}" for number in range(min(times, 5000))]

    def unknown() -> None:
        write_topic.clear()
        for name in names:
            write_topic[name]

    def nothing() -> None:
        for _ in range(times):
            pass

    empty = _cpu_us(nothing, times)
    return {
        "known_us": _cpu_us(known, times) - empty,
        "allows_us": _cpu_us(general, times) - empty,
        "unknown_us": _cpu_us(unknown, len(names)),
    }


async def measure_produce(directory: Path, rounds: int, requests: int) -> dict[str, list[float]]:
    """Return microseconds of CPU per request for each round, by `without` and `with` an authorizer."""
    settings = {
        "log.dirs": str(directory),
        "listeners": "127.0.0.1:0",
        "metrics.listener": "",
        "authorizer.class.name": STANDARD_AUTHORIZER,
    }
    config = BrokerConfig.of({name: Setting(text, "the benchmark") for name, text in settings.items()})
    node = Node(config, asyncio.get_running_loop(), SystemClock())
    await node.start()
    services = node._services
    assert services is not None
    await services.changes.create_topics(CreateTopicsRequest(topics=[NewTopic(name="topic-1", partitions=1)]))
    authorizer = Authorizer()
    authorizer.replace(authorizer.prepare(acls(1000)))
    dispatcher: Dispatcher = services.connections.dispatcher
    frame = memoryview(bytearray(KafkaDialect().produce("topic-1", build_batch(1, VALUE_BYTES).data)))[4:]
    sessions = {}
    for name, access in (("without", None), ("with", authorizer.access_for(PRINCIPAL, HOST))):
        session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
        session.access = access
        sessions[name] = session
        _serve(dispatcher, session, frame, WARM_UP)
    found: dict[str, list[float]] = {name: [] for name in sessions}
    gc.collect()
    gc.disable()
    for number in range(rounds):
        for name, session in list(sessions.items())[:: 1 if number % 2 else -1]:
            found[name].append(_cpu_us(lambda: _serve(dispatcher, session, frame, requests), requests))  # noqa: B023
        await asyncio.sleep(0)
    gc.enable()
    partition = node._partitions.get("topic-1", 0)
    assert partition is not None
    assert partition.log.log_end_offset == 2 * (WARM_UP + rounds * requests), "requests were refused"
    await node.stop()
    return found


def _serve(dispatcher: Dispatcher, session: Session, frame: memoryview, requests: int) -> None:
    received = bytes(frame)  # an append writes offset and epoch into the buffer
    for _ in range(requests):
        frame[:] = received
        dispatcher.serve(session, frame)
    frame[:] = received


def _cpu_us(work: Callable[[], None], times: int) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) / times * 1e6


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.authorization", description=__doc__)
    parser.add_argument("--acls", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--requests", type=int, default=500)
    add_json_option(parser, "authorization")
    options = parser.parse_args(arguments)
    decisions = measure_decisions(options.acls, options.decisions)
    for name, cost in decisions.items():
        print(f"decision {name.removesuffix('_us'):8} {cost:7.3f} us")
    with tempfile.TemporaryDirectory(prefix="barnabas-authorization-") as directory:
        produced = asyncio.run(measure_produce(Path(directory), options.rounds, options.requests))
    without, with_it = median(produced["without"]), median(produced["with"])
    share = median((b - a) / a for a, b in zip(produced["without"], produced["with"], strict=True))
    print(
        f"produce without an authorizer {without:6.2f} us, with {with_it:6.2f} us, {share:+.1%} (median of the rounds)"
    )
    write_result(options.json, "authorization", options, {"decisions": decisions, "produce": produced})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
