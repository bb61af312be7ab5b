"""Barnabas and Apache Kafka beside each other, each with a directory and a client of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from tests.interop.differential import steps
from tests.interop.differential.answers import CLOSED, SILENCE, UNANSWERED, Masks
from tests.interop.differential.requests import Names, Request, build
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.two_brokers import Topic, create_topics, set_config
from tests.support.kafka.wire_producer import await_complete, find_coordinator

VERSION = "4.3.0"
NEVER_MS = str(10**10)
SETTINGS = {
    "log.retention.check.interval.ms": NEVER_MS,
    "log.flush.offset.checkpoint.interval.ms": "1000000000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000000000",
    "log.initial.task.delay.ms": "1000000000",
    "producer.id.expiration.check.interval.ms": "1000000000",
    "log.index.size.max.bytes": "65536",
    "log.segment.delete.delay.ms": NEVER_MS,
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
"""Nothing happens by time alone, because the brokers' timers do not run together."""

WAIT_S = 30.0
ANSWER_S = 30.0
"""No request of a script waits for longer."""
_POLL_S = 0.005
_NOT_YET = (3, 5, 6)
_UNKNOWN_TOPIC = 3
_CONCURRENT_TRANSACTIONS = 51
_LOADING = (14, 15, 16)
_FENCE = "fence"


class Process(Protocol):
    """A broker that can be ended and started again on its directory."""

    data: Path

    def start(self) -> tuple[str, int]:
        """Start it; return its address."""
        ...

    def end(self, *, kill: bool) -> None:
        """Stop it cleanly, or kill it."""
        ...

    def log(self) -> str:
        """The end of its log."""
        ...


class KafkaProcess:
    """Apache Kafka."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self._kafka = Kafka(VERSION, self.data, directory)
        self._kafka.settings |= SETTINGS
        self._kafka.format()
        self._broker: Any = None

    def start(self) -> tuple[str, int]:
        self._broker = self._kafka.start()
        return "127.0.0.1", self._broker.port

    def end(self, *, kill: bool) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.kill() if kill else broker.stop()

    def log(self) -> str:
        return "" if self._broker is None else str(self._broker.log[-3000:])


class BarnabasProcess:
    """Our daemon."""

    def __init__(self, directory: Path, kernel: str | None = None) -> None:
        """`kernel`: "python" for the Python code instead of compiled kernels."""
        self.data = directory / "data"
        self._directory = directory
        self._environ = None if kernel is None else {"BARNABAS_KERNEL": kernel}
        self._daemon: Any = None

    def start(self) -> tuple[str, int]:
        if self._daemon is None:
            settings = (f"{name}={value}" for name, value in SETTINGS.items())
            self._daemon = start_daemon(self._directory, *settings, environ=self._environ)
        else:
            self._daemon.start()
        return self._daemon.host, self._daemon.port

    def end(self, *, kill: bool) -> None:
        if self._daemon is None or not self._daemon.running:
            return
        if kill:
            self._daemon.kill()
        else:
            assert self._daemon.stop() == 0, self._daemon.log_tail()

    def log(self) -> str:
        return "" if self._daemon is None else str(self._daemon.log_tail())


class Side:
    """One of the two brokers, and what a running script knows of it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._fences = 0
        self._has_restarted = False
        self._counts: dict[str, int] = {}
        """Numbers of partitions of the script's topics."""
        self.all_masks: dict[str, Masks] = {}
        """By the prefix of a script's topics."""
        self._address = process.start()
        self._connect()
        find_coordinator(self._admin, "anybody")
        create_topics(self._admin, {_FENCE: Topic(1, {})})
        self._await_leaders(_FENCE, 1)

    def begin(self, prefix: str) -> None:
        """Begin a script."""
        self._counts.clear()
        self.names = Names(prefix)
        self.masks = self.all_masks[prefix] = Masks(self.names)
        self.masks.without_epochs = self._has_restarted  # those of coordinators

    def create_topics(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create the script's topics, and wait until they can be used."""
        made = {self.names.topic(name): Topic(count, configs) for name, (count, configs) in topics.items()}
        create_topics(self._admin, made)
        for name, (count, _) in topics.items():
            self._counts[self.names.topic(name)] = count
            self._await_leaders(self.names.topic(name), count)
            self.names.topic_ids[name] = self._admin.topic_id(self.names.topic(name))

    def do(self, step: steps.Step) -> Any:
        """Do one step; return its outcome as plain values."""
        match step:
            case steps.Recreate():
                return self._recreate(step)
            case steps.SetConfig():
                return self._set_config(step)
            case steps.InitProducer():
                return self._init_producer(step)
            case steps.EndTransaction():
                return self._end_transaction(step)
            case _:
                return self._ask(step)

    def end(self, *, kill: bool) -> None:
        """End the broker."""
        for wire in (*self._wires, self._admin):
            wire.socket.close()
        self.process.end(kill=kill)

    def start_again(self) -> None:
        """Start the broker again; leader epochs are masked from now on."""
        self._address = self.process.start()
        self._connect()
        self._has_restarted = True
        for masks in self.all_masks.values():
            masks.without_epochs = True
        find_coordinator(self._admin, "anybody")
        self._await_leaders(_FENCE, 1)
        for topic, count in self._counts.items():
            self._await_leaders(topic, count)
        self.fence()

    def _connect(self) -> None:
        self._wires = [self._connected() for _ in range(steps.CONNECTIONS)]
        self._admin = KafkaWire(*self._address)

    def _connected(self) -> KafkaWire:
        wire = KafkaWire(*self._address)
        wire.socket.settimeout(ANSWER_S)
        return wire

    def _ask(self, step: Any) -> Any:
        request = build(step, self.names)
        answer = self._call(request, step.connection)
        if isinstance(step, steps.Fetch) and step.session is not None and getattr(answer, "error_code", 1) == 0:
            self.names.answered(step.session, answer.session_id)
        self.masks.in_order = request.api == "fetch"
        return answer if isinstance(answer, str) else self.masks.plain(answer)

    def _call(self, request: Request, connection: int) -> Any:
        """Return the entity of the answer, or what happened instead."""
        wire = self._wires[connection]
        try:
            wire.send(request.entity)
            if request.is_answered:
                return wire.receive(request.api, request.version)
            wire.topic_id(_FENCE)  # a request after it, which is not answered on a closed connection
        except (ConnectionError, TimeoutError) as error:
            wire.socket.close()
            self._wires[connection] = self._connected()
            return SILENCE if isinstance(error, TimeoutError) else CLOSED
        return UNANSWERED

    def _init_producer(self, step: steps.InitProducer) -> Any:
        answer = self._once(step, (*_LOADING, _CONCURRENT_TRANSACTIONS))
        if not isinstance(answer, str) and answer.error_code == 0:
            self.names.producers[step.producer] = answer.producer_id, answer.producer_epoch
            self.masks.ids.setdefault(answer.producer_id, 1_000_000 + len(self.masks.ids))
        return answer if isinstance(answer, str) else self.masks.plain(answer)

    def _end_transaction(self, step: steps.EndTransaction) -> Any:
        answer = self._once(step, (*_LOADING, _CONCURRENT_TRANSACTIONS))
        transactional_id = self.names.transactional_id(step.transactional_id)
        if isinstance(answer, str) or transactional_id is None:
            return answer
        if answer.error_code == 0:
            await_complete(self._admin, transactional_id)
            if hasattr(answer, "producer_id"):
                self.names.producers[step.producer] = answer.producer_id, answer.producer_epoch
        return self.masks.plain(answer)

    def _once(self, step: Any, not_yet: tuple[int, ...]) -> Any:
        """Ask until the answer is none of these errors, which last a moment in one of the brokers."""
        deadline = time.monotonic() + WAIT_S
        request = build(step, self.names)
        while not isinstance(answer := self._call(request, step.connection), str) and answer.error_code in not_yet:
            assert time.monotonic() < deadline, answer
            time.sleep(_POLL_S)  # polling another process with a deadline
        return answer

    def _set_config(self, step: steps.SetConfig) -> Any:
        set_config(self._admin, self.names.topic(step.topic), step.name, step.value)
        self._await_config(self.names.topic(step.topic), step.name, step.value)
        self.fence()
        return None

    def _recreate(self, step: steps.Recreate) -> Any:
        topic = self.names.topic(step.topic)
        kio = schema("delete_topics", 5, "request")
        self._admin.send(kio.DeleteTopicsRequest(topic_names=(topic,), timeout=timedelta(seconds=30)))
        (deleted,) = self._admin.receive("delete_topics", 5).responses
        self._await(lambda: self._error_of(topic, 0) == _UNKNOWN_TOPIC, f"the end of {topic}")
        self.fence()
        self.names.forget(step.topic)
        self.create_topics({step.topic: (step.partitions, step.configs)})
        return int(deleted.error_code)

    def fence(self) -> None:
        """Wait until all earlier changes of the metadata have taken effect: Kafka publishes them one by one."""
        self._fences += 1
        value = str(1000 + self._fences)
        set_config(self._admin, _FENCE, "segment.ms", value)
        self._await_config(_FENCE, "segment.ms", value)

    def _await_config(self, topic: str, name: str, value: str) -> None:
        self._await(lambda: self._config(topic, name) == value, f"{name}={value} of {topic}")

    def _config(self, topic: str, name: str) -> str | None:
        kio = schema("describe_configs", 4, "request")
        resource = kio.DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=(name,))
        self._admin.send(
            kio.DescribeConfigsRequest(resources=(resource,), include_synonyms=False, include_documentation=False)
        )
        (found,) = self._admin.receive("describe_configs", 4).results
        return next((each.value for each in found.configs), None)

    def _await_leaders(self, topic: str, partitions: int) -> None:
        def all_led() -> bool:
            return all(self._error_of(topic, number) not in _NOT_YET for number in range(partitions))

        self._await(all_led, f"the leaders of {topic}")

    def _error_of(self, topic: str, partition: int) -> int:
        kio = schema("list_offsets", 4, "request")
        entry = kio.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        asked = kio.ListOffsetsTopic(name=topic, partitions=(entry,))
        answer = self._admin.call("list_offsets", 4, replica_id=-1, isolation_level=0, topics=(asked,))
        return int(answer.topics[0].partitions[0].error_code)

    def _await(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < deadline, f"{type(self.process).__name__}: {what}"
            time.sleep(_POLL_S)  # polling another process with a deadline
