"""Barnabas and Apache Kafka beside each other, each with a directory and a client of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from tests.interop.differential import steps
from tests.interop.differential.answers import CLOSED, SILENCE, UNANSWERED, Masks
from tests.interop.differential.configs import MIN_LAG
from tests.interop.differential.directories import is_clean, is_trimmed
from tests.interop.differential.processes import Process
from tests.interop.differential.requests import Names, Request, build
from tests.support.compacted_topic import clean_offset
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.two_brokers import Topic, create_topics, set_config
from tests.support.kafka.wire_producer import await_complete, find_coordinator

WAIT_S = 30.0
ANSWER_S = 30.0
"""No request of a script waits for longer."""
_POLL_S = 0.005
_NOT_YET = (3, 5, 6)
_UNKNOWN_TOPIC = 3
_CONCURRENT_TRANSACTIONS = 51
_LOADING = (14, 15, 16)
_FENCE = "fence"
_RATIO = "min.cleanable.dirty.ratio"
_ALWAYS_CLEAN, _NEVER_CLEAN = "0.0", "1.0"
"""A log is cleaned if its ratio is above the config."""


class Side:
    """One of the two brokers, and what a running script knows of it."""

    def __init__(self, process: Process, *, cleans: bool) -> None:
        self.process = process
        self._cleans = cleans
        self._fences = 0
        self._has_restarted = False
        self._counts: dict[str, int] = {}
        """Numbers of partitions of the script's topics."""
        self._lags_ms: dict[str, int] = {}
        """How old a record of a topic has to be before the cleaner looks at it."""
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
        self._lags_ms.clear()
        self.names = Names(prefix)
        self.masks = self.all_masks[prefix] = Masks(self.names)
        self.masks.without_epochs = self._has_restarted  # those of coordinators

    def create_topics(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create the script's topics, and wait until they can be used."""
        made = {self.names.topic(name): Topic(count, configs) for name, (count, configs) in topics.items()}
        create_topics(self._admin, made)
        for name, (count, configs) in topics.items():
            self._counts[self.names.topic(name)] = count
            self._lags_ms[self.names.topic(name)] = int(configs.get(MIN_LAG, "0"))
            self._await_leaders(self.names.topic(name), count)
            self.names.topic_ids[name] = self._admin.topic_id(self.names.topic(name))

    def do(self, step: steps.Step) -> Any:
        """Do one step; return its outcome as plain values."""
        match step:
            case steps.Recreate():
                return self._recreate(step)
            case steps.SetConfig():
                return self._set_config(step)
            case steps.Clean():
                return self._clean(step)
            case steps.DeleteRecords() if self._cleans:
                return self._delete_records(step)
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

    def _clean(self, step: steps.Clean) -> dict[int, int]:
        """Let the cleaner clean a topic once; return the offsets up to which its partitions are clean then.

        An open transaction and records that are too new bound the round.
        """
        topic = self.names.topic(step.topic)
        numbers = range(self._counts[topic])
        for ratio in (_ALWAYS_CLEAN, _NEVER_CLEAN):
            set_config(self._admin, topic, _RATIO, ratio)
            self._await_config(topic, _RATIO, ratio)
            self._await(lambda: all(self._is_clean(topic, number) for number in numbers), f"a clean {topic}")
        # After DeleteRecords the next round moves the clean offset up, also where nothing is to be cleaned.
        starts = {number: self._offset_at(topic, number, -2).offset for number in numbers}
        self._await(
            lambda: not any(0 <= clean_offset(self.process.data, topic, n) < starts[n] for n in numbers),
            f"a clean offset of {topic} that is not below the log start",
        )
        self.fence()
        return {number: clean_offset(self.process.data, topic, number) for number in numbers}

    def _is_clean(self, topic: str, number: int) -> bool:
        stable = int(self._offset_at(topic, number, -1, isolation=1).offset)
        return is_clean(self.process.data, topic, number, stable, self._lags_ms[topic])

    def _delete_records(self, step: steps.DeleteRecords) -> Any:
        """Delete records, and wait until the cleaner has removed the segments below the new start."""
        answer = self._ask(step)
        for name, partitions in step.topics:
            topic = self.names.topic(name)
            for number, _ in partitions:
                if self._error_of(topic, number) == 0:
                    start = self._offset_at(topic, number, -2).offset
                    self._await(lambda: is_trimmed(self.process.data, topic, number, start), f"the end of old {topic}")  # noqa: B023
        return answer

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
        return int(self._offset_at(topic, partition, -1).error_code)

    def _offset_at(self, topic: str, partition: int, timestamp: int, *, isolation: int = 0) -> Any:
        kio = schema("list_offsets", 4, "request")
        entry = kio.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        asked = kio.ListOffsetsTopic(name=topic, partitions=(entry,))
        answer = self._admin.call("list_offsets", 4, replica_id=-1, isolation_level=isolation, topics=(asked,))
        return answer.topics[0].partitions[0]

    def _await(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < deadline, f"{type(self.process).__name__}: {what}"
            time.sleep(_POLL_S)  # polling another process with a deadline
