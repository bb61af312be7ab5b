"""A real Apache Kafka node, broker and controller, on a test's data directory; and Kafka's tools.

    kafka = Kafka("4.3.0", directory, scratch)
    with kafka.running() as broker:
        kafka.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.bootstrap, "--list")
        kafka.java_program("ReadBack", broker.bootstrap)

Uses free ports of 127.0.0.1 only. Every wait has a timeout; processes are ended by process id; errors contain the end
of the broker's log. Java's memory is kept small.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.free_ports import free_ports
from tests.support.interop import need_commands, require_or_skip
from tests.support.kafka import jars as kafka_jars
from tests.support.kafka import metadata_shell
from tests.support.kafka.class_archive import archive_options

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
TOOL_TIMEOUT_S = 120.0
LEADING_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.05
_TAIL_CHARACTERS = 6000
_STARTED = re.compile(r"Kafka Server started")
_LEADS = re.compile(r"Leader (\S+) (?:with topic id \S+ )?starts at")
_PARTITION = re.compile(r"(?!__cluster_metadata-0$).+-\d+")
_JAVA_PROGRAMS = Path(__file__).parents[2] / "interop" / "java"

_SMALL_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")

# Kafka 3.9 logs with reload4j, 4.x with log4j 2; each reads its own file.
_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LOG4J2 = """rootLogger.level=info
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""


def initial_features(version: str) -> str:
    """Return the setting of a new directory of ours that this version of Kafka shall open."""
    return f"initial.features=transaction.version={0 if version.startswith('3.') else 2}"


_KRAFT_PROPERTIES = ("process.roles", "node.id", "controller.", "listeners", "listener.security")
_PORT_TAKEN = "Address already in use"
_STARTS_FOR_PORTS = 3


class KafkaError(AssertionError):
    """Kafka failed; the message ends with its output."""


class _PortTakenError(KafkaError):
    """Another program listens on the port, or has a connection from it."""


def need_kafka(version: str) -> Path:
    """Return the jars of a version; without java, mvn or a registry end the test by `require_or_skip`."""
    __tracebackhide__ = True
    need_commands("java", "javac", "mvn")
    try:
        return kafka_jars.fetch(version)
    except kafka_jars.FetchError as error:
        require_or_skip(str(error))


class Broker:
    """A running Kafka broker."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
        self.process = process
        self.port = port
        self.log_path = log_path

    @property
    def bootstrap(self) -> str:
        """`host:port` of the client listener."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Kafka's output so far."""
        return self.log_path.read_text(errors="replace")

    def stop(self) -> None:
        """Stop Kafka by SIGTERM, which is a controlled shutdown. Raises KafkaError if it does not end in time."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill Kafka by SIGKILL, as in a crash."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)  # Java writes the stacks of its threads to the log
            time.sleep(1)
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)
            raise KafkaError(f"Kafka did not end within {STOP_TIMEOUT_S} s\n{_tail(self.log)}") from None


class Kafka:
    """One version of Kafka on one or more data directories; `scratch` is for its configuration and logs."""

    started = _STARTED
    """The line of its log that says that it is ready."""

    def __init__(
        self, version: str, log_dirs: Path | Sequence[Path], scratch: Path, *, node_id: int = 1, **settings: str
    ) -> None:
        """`settings` are server properties with `_` for `.`; they replace the defaults."""
        self.version = version
        self.jars = need_kafka(version)
        self.log_dirs = (log_dirs,) if isinstance(log_dirs, Path) else tuple(log_dirs)
        self.scratch = scratch
        self.node_id = node_id
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.extra_listeners: dict[str, str] = {}
        """Further listeners for clients: name -> security protocol."""
        self.extra_ports: dict[str, int] = {}
        """The ports of `extra_listeners`, new at each start."""
        self.system_properties: dict[str, str] = {}
        """Java's system properties of the broker and its tools."""
        self._starts = 0
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / "log4j.properties").write_text(_LOG4J)
        (scratch / "log4j2.properties").write_text(_LOG4J2)

    def write_properties(self) -> tuple[Path, int]:
        """Write server.properties with free ports; return its path and the client port."""
        port, controller_port = free_ports(2)
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self.node_id}@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.retention.ms": "-1",
            **self.settings,
        }
        self.extra_ports = dict(zip(self.extra_listeners, free_ports(len(self.extra_listeners)), strict=True))
        for name, extra_port in self.extra_ports.items():
            properties["listeners"] += f",{name}://127.0.0.1:{extra_port}"
            properties["advertised.listeners"] += f",{name}://127.0.0.1:{extra_port}"
            properties["listener.security.protocol.map"] += f",{name}:{self.extra_listeners[name]}"
        if not self.version.startswith("3."):
            properties.setdefault("share.coordinator.state.topic.replication.factor", "1")
            properties.setdefault("share.coordinator.state.topic.min.isr", "1")
        path = self.scratch / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return path, port

    def format(self, *arguments: str, cluster_id: str | None = None) -> str:
        """Format the empty directories by `kafka-storage format`; return the cluster id, a new one if None."""
        path, _ = self.write_properties()
        cluster_id = cluster_id or base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode().replace("-", "_")
        self.tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(path), *arguments)
        return cluster_id

    def start(self) -> Broker:
        """Start a broker; return when it is ready for clients and leads the partitions that it has. Raises KafkaError.

        A free port may be taken until Kafka listens on it, by a connection of another test: then it is started again.
        """
        for _ in range(_STARTS_FOR_PORTS - 1):
            try:
                return self._start_once()
            except _PortTakenError:
                continue
        return self._start_once()

    def _start_once(self) -> Broker:
        path, port = self.write_properties()
        self._starts += 1
        log_path = self.scratch / f"kafka-{self._starts}.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                self._java("kafka.Kafka", str(path)),
                cwd=self.scratch,
                env=_environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        broker = Broker(process, port, log_path)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.started.search(broker.log):
            if process.poll() is not None:
                failure = _PortTakenError if _PORT_TAKEN in broker.log else KafkaError
                raise failure(f"Kafka {self.version} ended with {process.returncode}\n{_tail(broker.log)}")
            if time.monotonic() > deadline:
                broker.kill()
                raise KafkaError(f"Kafka {self.version} was not ready in {START_TIMEOUT_S} s\n{_tail(broker.log)}")
            time.sleep(_POLL_INTERVAL_S)  # polling another process with a deadline
        self._wait_until_it_leads(broker)
        return broker

    def _wait_until_it_leads(self, broker: Broker) -> None:
        """Wait until it leads its partitions, which it begins as it becomes ready, and ends after that.

        A request before that gets NOT_LEADER_OR_FOLLOWER, which not every client of a test tries again. A partition
        that stays without a leader, for example on a broken disk, is waited for in vain; the test then goes on.
        """
        held = {
            each.name
            for log_dir in self.log_dirs
            if log_dir.is_dir()
            for each in log_dir.iterdir()
            if each.is_dir() and _PARTITION.fullmatch(each.name)
        }
        deadline = time.monotonic() + LEADING_TIMEOUT_S
        while waiting := held - set(_LEADS.findall(broker.log)):
            if broker.process.poll() is not None:
                raise KafkaError(f"Kafka {self.version} ended with {broker.process.returncode}\n{_tail(broker.log)}")
            if time.monotonic() > deadline:
                print(f"Kafka {self.version} does not lead {sorted(waiting)} after {LEADING_TIMEOUT_S} s")
                break
            time.sleep(_POLL_INTERVAL_S)  # polling another process with a deadline

    @contextmanager
    def running(self) -> Iterator[Broker]:
        """Run a broker; stop it cleanly at the end, or kill it if the test fails."""
        broker = self.start()
        try:
            yield broker
        except BaseException as error:
            broker.kill()
            error.add_note(_tail(broker.log))
            raise
        broker.stop()

    def tool(self, main_class: str, *arguments: str, stdin: str = "") -> str:
        """Run one of Kafka's tools; return its standard output. Raises KafkaError unless the exit code is 0."""
        return _run(self._java(main_class, *arguments), self.scratch, stdin)

    def dump_log_segments(self, *arguments: str) -> str:
        """Run Kafka's DumpLogSegments, whose package changed within 4.x."""
        with zipfile.ZipFile(self.jars / f"kafka-tools-{self.version}.jar") as jar:
            is_moved = "org/apache/kafka/tools/DumpLogSegments.class" in jar.namelist()
        package = "org.apache.kafka.tools" if is_moved else "kafka.tools"
        return self.tool(f"{package}.DumpLogSegments", *arguments)

    def metadata_shell(self, snapshot: Path, *command: str) -> str:
        """Run one command of kafka-metadata-shell on a snapshot or a segment of the metadata log."""
        try:
            jars = kafka_jars.fetch_shell(self.version)
        except kafka_jars.FetchError as error:
            require_or_skip(str(error))
        shell = "org.apache.kafka.shell.MetadataShell"
        # For every snapshot it logs to standard output that it skips the header and the footer.
        quiet = "-Dorg.apache.logging.log4j.level=OFF"
        words = ["java", *_SMALL_JVM, quiet, "-cp", f"{jars}/*", shell, "--snapshot", str(snapshot)]
        said = metadata_shell.ask(words, command, self.scratch, _environ())
        if said is not None:
            return said
        raise KafkaError(f"kafka-metadata-shell said nothing to {' '.join(command)} of {snapshot}")

    def java_program(self, name: str, *arguments: str) -> str:
        """Run tests/interop/java/<name>.java, compiled once against this version's client."""
        classes = self.scratch / f"classes-{self.version}"
        if not (classes / f"{name}.class").exists():
            source = str(_JAVA_PROGRAMS / f"{name}.java")
            _run(["javac", "-nowarn", "-cp", f"{self.jars}/*", "-d", str(classes), source], self.scratch)
        return _run(self._java(name, *arguments, classes=classes), self.scratch)

    def _java(self, main_class: str, *arguments: str, classes: Path | None = None) -> list[str]:
        # The jars come first: the archive is of them.
        class_path = f"{self.jars}/*" if classes is None else f"{self.jars}/*:{classes}"
        logging = (
            f"-Dlog4j.configuration=file:{self.scratch / 'log4j.properties'}",
            f"-Dlog4j2.configurationFile={self.scratch / 'log4j2.properties'}",
        )
        is_broker = main_class == "kafka.Kafka"
        defined = [f"-D{name}={value}" for name, value in self.system_properties.items()]
        archive = archive_options(self.jars, _SMALL_JVM)
        options = [*_SMALL_JVM, *archive, *defined, *(logging if is_broker else ())]
        return ["java", *options, "-cp", class_path, main_class, *arguments]


class ZooKeeperKafka(Kafka):
    """A Kafka 3.x with ZooKeeper."""

    started = re.compile(r"\[KafkaServer id=\d+\] started")

    @contextmanager
    def zookeeper(self) -> Iterator[None]:
        """Run the ZooKeeper that its starts connect to."""
        (port,) = free_ports(1)
        config = self.scratch / "zoo.cfg"
        config.write_text(
            f"dataDir={self.scratch / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n"
        )
        self.settings["zookeeper.connect"] = f"127.0.0.1:{port}"
        with (self.scratch / "zookeeper.log").open("wb") as log:
            process = subprocess.Popen(
                self._java("org.apache.zookeeper.server.ZooKeeperServerMain", str(config)),
                cwd=self.scratch,
                env=_environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield  # Kafka tries to connect until ZooKeeper listens
        finally:
            process.terminate()
            process.wait(STOP_TIMEOUT_S)

    def write_properties(self) -> tuple[Path, int]:
        """Write server.properties with a free port."""
        path, port = super().write_properties()
        kept = (line for line in path.read_text().splitlines() if not line.startswith(_KRAFT_PROPERTIES))
        listeners = (f"broker.id={self.node_id}", f"listeners=PLAINTEXT://127.0.0.1:{port}")
        path.write_text("\n".join([*kept, *listeners, ""]))
        return path, port


class HandedOver(Kafka):
    """Apache Kafka with an unmodified properties file from `barnabas handover`."""

    properties = Path()
    port = 0

    def write_properties(self) -> tuple[Path, int]:
        """Return the existing file."""
        return self.properties, self.port


def _run(command: Sequence[str], directory: Path, stdin: str = "") -> str:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=_environ(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise KafkaError(f"{' '.join(command[-4:])} did not end within {TOOL_TIMEOUT_S} s") from error
    if done.returncode:
        raise KafkaError(f"{' '.join(command)} ended with {done.returncode}\n{_tail(done.stdout + done.stderr)}")
    return done.stdout


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "JAVA_TOOL"))}


def _tail(text: str) -> str:
    return f"--- output\n{text[-_TAIL_CHARACTERS:]}"
