"""The image and docker-compose.yml in a container engine: a broker, a second container, Prometheus, a restart."""

from __future__ import annotations

import json
import os
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.config.properties_file import parse_properties
from barnabas.config.security.jaas import parse_jaas
from tests.support.alerts import alerts
from tests.support.containers import (
    IMAGE,
    Compose,
    Engine,
    get_json,
    run,
    why_no_engine,
)
from tests.support.eventually import eventually

# The first run on a machine installs an engine and creates two base images, which counts towards the first test's time.
pytestmark = pytest.mark.timeout(1800)

NETWORK_BOOTSTRAP = "broker:29092"


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    reason = why_no_engine()
    if reason:
        pytest.skip(reason)
    engine = Engine()
    try:
        engine.start()
        engine.build()
        yield IMAGE
    finally:
        engine.stop()


@pytest.fixture(scope="module")
def compose(image: str) -> Iterator[Compose]:
    compose = Compose(f"barnabas-interop-{os.getpid()}")
    try:
        compose("up", "--detach", "--no-build")
        compose.wait_until_healthy("broker")
        yield compose
    finally:
        compose("down", "--volumes")


def on_host(compose: Compose, *arguments: str, stdin: str = "") -> str:
    command = [sys.executable, "-m", "barnabas", *arguments, "--bootstrap", f"localhost:{compose.broker_port}"]
    return run(command, stdin=stdin)


def in_second_container(compose: Compose, *arguments: str, stdin: str = "") -> str:
    command = ["docker", "run", "--rm", "--interactive", "--network", compose.network, IMAGE, *arguments]
    return run([*command, "--bootstrap", NETWORK_BOOTSTRAP], stdin=stdin)


def values(lines: str) -> list[str]:
    return [json.loads(line)["value"] for line in lines.splitlines()]


def query(compose: Compose, expression: str) -> float | None:
    address = f"http://127.0.0.1:{compose.prometheus_port}/api/v1/query"
    answer = get_json(f"{address}?{urllib.parse.urlencode({'query': expression})}")
    if answer is None or not answer["data"]["result"]:
        return None
    return float(answer["data"]["result"][0]["value"][1])


def test_the_image_runs_the_compiled_kernel_without_root_and_without_a_compiler(image: str) -> None:
    version = run(["docker", "run", "--rm", image, "--version"])
    script = "id -u; command -v gcc cc; ls /opt/barnabas/bin; true"
    found = run(["docker", "run", "--rm", "--entrypoint", "sh", image, "-c", script]).split()

    assert "compiled kernel" in version
    assert found[0] == "10001"
    assert not {"/usr/bin/gcc", "/usr/bin/cc", "pip"} & set(found)


def test_compose_publishes_the_usual_ports_unless_told_otherwise(image: str) -> None:
    configuration = run(["docker-compose", "config"])

    for port in (9092, 9404, 9090):
        assert f"127.0.0.1:{port}:{port}" in configuration
    assert "HOST://localhost:9092,NETWORK://broker:29092" in configuration


def test_host_and_second_container_read_what_either_wrote_also_after_a_restart(compose: Compose) -> None:
    from_host = [f"host-{i}" for i in range(100)]
    from_container = [f"container-{i}" for i in range(100)]
    on_host(compose, "topic", "create", "orders", "--partitions", "1")
    on_host(compose, "produce", "orders", stdin="\n".join(from_host) + "\n")
    in_second_container(compose, "produce", "orders", stdin="\n".join(from_container) + "\n")
    consume = ("consume", "orders", "--from-beginning", "--exit-at-end", "--json")

    assert values(on_host(compose, *consume)) == from_host + from_container
    assert values(in_second_container(compose, *consume)) == from_host + from_container

    compose("stop", "broker")
    stopped = compose.state("broker")
    assert (stopped["Status"], stopped["ExitCode"]) == ("exited", 0), compose.log("broker")
    compose("rm", "--force", "broker")  # the records come from the volume, not from this container
    compose("up", "--detach", "--no-build", "broker")
    compose.wait_until_healthy("broker")

    assert values(on_host(compose, *consume)) == from_host + from_container
    assert values(in_second_container(compose, *consume)) == from_host + from_container


def test_prometheus_scrapes_what_the_broker_counts(compose: Compose) -> None:
    on_host(compose, "topic", "create", "counted", "--partitions", "1")
    on_host(compose, "produce", "counted", stdin="a\nb\nc\n")

    up = eventually(lambda: query(compose, 'up{job="barnabas"} == 1'), what="Prometheus has scraped the broker")
    end_offset = eventually(
        lambda: query(compose, 'barnabas_log_end_offset{topic="counted",partition="0"} == 3'),
        what="Prometheus knows the log end offset of counted-0",
    )

    assert (up, end_offset) == (1, 3)


def test_the_compose_files_prometheus_has_the_alert_rules(compose: Compose) -> None:
    address = f"http://127.0.0.1:{compose.prometheus_port}/api/v1/rules"

    answer = eventually(lambda: get_json(address), what="Prometheus answers")

    (group,) = answer["data"]["groups"]
    assert [rule["name"] for rule in group["rules"]] == [alert.name for alert in alerts()]


def test_the_secure_profile_serves_the_users_of_its_properties_and_nobody_else(
    compose: Compose, tmp_path: Path
) -> None:
    compose("--profile", "secure", "up", "--detach", "--no-build", "secure-broker")
    compose.wait_until_healthy("secure-broker")
    copied = tmp_path / "client.properties"
    run(
        [
            "docker",
            "cp",
            f"{compose.container('secure-broker')}:/var/lib/barnabas/secure/client.properties",
            str(copied),
        ]
    )
    settings = {entry.key: entry.value for entry in parse_properties(copied.read_text())}
    login = parse_jaas(settings["sasl.jaas.config"]).options
    client: dict[str, Any] = {
        "bootstrap.servers": f"localhost:{compose.secure_port}",
        "security.protocol": settings["security.protocol"],
        "sasl.mechanism": settings["sasl.mechanism"],
        "sasl.username": login["username"],
        "sasl.password": login["password"],
        "ssl.ca.pem": settings["ssl.truststore.certificates"],
    }

    assert settings["bootstrap.servers"] == client["bootstrap.servers"]
    assert AdminClient(client).list_topics(timeout=30).brokers
    with pytest.raises(KafkaException):
        AdminClient({**client, "sasl.password": "wrong"}).list_topics(timeout=5)

    compose("--profile", "secure", "up", "--detach", "--no-build", "--force-recreate", "secure-broker")
    compose.wait_until_healthy("secure-broker")
    assert AdminClient(client).list_topics(timeout=30).brokers, "the files were written again"
