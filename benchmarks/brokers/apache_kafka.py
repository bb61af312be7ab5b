"""Apache Kafka as a second system: one KRaft node, run from a folder of jars.

The JVM flags are those of its distribution's start scripts. The jars come from Maven (`kafka_2.13` and `kafka-tools`
with their dependencies, and a log4j binding); tests/support/kafka/jars.py fetches such a folder.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.brokers.system import Running, free_port, start_process
from benchmarks.requests.kafka_dialect import KafkaDialect

_JVM = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

WARM_GIGABYTES = 10.0
"""The amount after which the JVM has compiled its hot code."""

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}{listeners}
controller.listener.names=CONTROLLER
log.dirs={directory}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
{more}
"""


class ApacheKafka:
    """Apache Kafka, in the version of the jars."""

    name = "Apache Kafka"
    dialect = KafkaDialect()
    warm_seconds = 15.0

    def __init__(
        self,
        jars: Path,
        listeners: Sequence[str] = (),
        properties: Sequence[str] = (),
        *,
        warm_gigabytes: float = WARM_GIGABYTES,
    ) -> None:
        """`listeners` and `properties` (name=value) are added to those of server.properties."""
        self.warm_gigabytes = warm_gigabytes
        self._jars = jars
        self._listeners = listeners
        self._more = properties
        self.version = next(jars.glob("kafka_2.13-*.jar")).stem.removeprefix("kafka_2.13-")

    def start(self, directory: Path) -> Running:
        """Format `directory` (not timed), start, and wait for an answer to ApiVersions."""
        port = free_port()
        properties = directory / "server.properties"
        properties.write_text(
            _PROPERTIES.format(
                port=port,
                controller_port=free_port(),
                directory=directory / "data",
                listeners="".join(f",{listener}" for listener in self._listeners),
                more="\n".join(self._more),
            )
        )
        java = ["java", "-cp", f"{self._jars}/*"]
        storage_tool = [*java, "kafka.tools.StorageTool"]
        cluster = subprocess.run([*storage_tool, "random-uuid"], capture_output=True, text=True, check=True).stdout
        subprocess.run(
            [*storage_tool, "format", "-t", cluster.split()[-1], "-c", properties], capture_output=True, check=True
        )
        return self._start(directory, port)

    def restart(self, directory: Path) -> Running:
        """Start on a directory that `start` has formatted, on the same port."""
        lines = (directory / "server.properties").read_text().splitlines()
        listeners = next(line for line in lines if line.startswith("listeners="))
        return self._start(directory, int(listeners.split(",")[0].rpartition(":")[2]))

    def _start(self, directory: Path, port: int) -> Running:
        command = ["java", *_JVM, "-cp", f"{self._jars}/*", "kafka.Kafka", str(directory / "server.properties")]
        return start_process(command, directory, port, self.dialect)
