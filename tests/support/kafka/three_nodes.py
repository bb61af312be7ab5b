"""A cluster of three nodes of Apache Kafka 4.3, each broker and controller: any one of them may be killed.

All topics have three replicas, of which two must be in sync. A killed node is noticed after three seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.support.free_ports import free_ports
from tests.support.kafka.apache_kafka import Broker, Kafka

VERSION = "4.3.0"
_NODES = (1, 2, 3)
_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "3",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
}


class ThreeNodes:
    """The running nodes by their ids; `kill` ends one of them as a crash does."""

    def __init__(self, brokers: dict[int, Broker], ports: dict[int, int]) -> None:
        self._brokers = brokers
        self._ports = ports

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, also of those that are gone."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    @property
    def node_ids(self) -> list[int]:
        """The nodes that run."""
        return sorted(self._brokers)

    def kill(self, node_id: int) -> None:
        """Kill -9."""
        self._brokers.pop(node_id).kill()


@contextmanager
def three_nodes(directory: Path, **settings: str) -> Iterator[ThreeNodes]:
    """Run the cluster; `settings` are further properties, with `_` for `.`."""
    ports = dict(zip(_NODES, free_ports(3), strict=True))
    controllers = dict(zip(_NODES, free_ports(3), strict=True))

    def start(node_id: int) -> Broker:
        kafka = Kafka(
            VERSION, directory / f"data-{node_id}", directory / f"scratch-{node_id}", node_id=node_id, **settings
        )
        client = f"PLAINTEXT://127.0.0.1:{ports[node_id]}"
        kafka.settings |= _SETTINGS | {
            "controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{port}" for each, port in controllers.items()),
            "listeners": f"{client},CONTROLLER://127.0.0.1:{controllers[node_id]}",
            "advertised.listeners": client,
        }
        kafka.format(cluster_id=_CLUSTER_ID)
        return kafka.start()

    with ThreadPoolExecutor(len(_NODES)) as threads:
        starting = {node_id: threads.submit(start, node_id) for node_id in _NODES}
    brokers = {node_id: each.result() for node_id, each in starting.items() if each.exception() is None}
    nodes = ThreeNodes(brokers, ports)
    try:
        for each in starting.values():
            each.result()
        yield nodes
    finally:
        for node_id in nodes.node_ids:
            nodes.kill(node_id)
