"""Starts, refused starts and stops, as an operator sees them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.protocol.messages.topics.metadata import MetadataRequest
from tests.broker.conftest import Batch
from tests.support.daemon import REPOSITORY, Daemon, start_daemon, start_fresh_daemon
from tests.support.small_disk import fill_up, small_disk_or_skip
from tests.support.wire import WireClient, fetch_request

EXIT_TIMEOUT_S = 30


def serve(*settings: str) -> subprocess.CompletedProcess[str]:
    """Run a start that is expected to fail."""
    command = [sys.executable, "-m", "barnabas", "serve"]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=EXIT_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def wait_for_log(daemon: Daemon, text: str) -> None:
    """Wait at most 30 seconds until the daemon's log contains `text`."""
    deadline = time.monotonic() + 30
    while text not in daemon.log:
        assert time.monotonic() < deadline, f"no {text!r} in the log"
        time.sleep(0.01)


def assert_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Assert one clear sentence, a non-zero exit code and no traceback."""
    assert result.returncode not in (0, None)
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    for word in words:
        assert word in last


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = serve(f"listeners=127.0.0.1:{port}", f"log.dirs={tmp_path}/d", "metrics.listener=127.0.0.1:0")
    assert_refused(refused, str(port), "in use")
    assert not (tmp_path / "d").exists()


def test_a_metrics_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = serve("listeners=127.0.0.1:0", f"log.dirs={tmp_path}/d", f"metrics.listener=127.0.0.1:{port}")
    assert_refused(refused, str(port), "metrics.listener")


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as first:
        refused = serve("listeners=127.0.0.1:0", f"log.dirs={first.data_directory}")
        assert_refused(refused, str(first.data_directory), "lock")
        with WireClient(first.host, first.port) as client:
            client.call(MetadataRequest.of_names([]))


def test_a_bad_property_is_refused_with_its_name_and_source(tmp_path: Path) -> None:
    assert_refused(serve("log.segment.bytes=much"), "log.segment.bytes=much", "--set")
    file = tmp_path / "server.properties"
    file.write_text("# mine\nlog.retentionn.ms=5\n")
    command = [sys.executable, "-m", "barnabas", "serve", "--config", str(file)]
    refused = subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=EXIT_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert_refused(refused, "log.retentionn.ms", "line 2", "log.retention.ms")


def test_a_node_id_other_than_the_directorys_is_refused(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "node.id=7") as daemon:
        data = daemon.data_directory
    refused = serve("listeners=127.0.0.1:0", f"log.dirs={data}", "node.id=8")
    assert_refused(refused, "7", "8")
    with start_daemon(tmp_path) as daemon, WireClient(daemon.host, daemon.port) as client:
        assert client.call(MetadataRequest.of_names([])).brokers[0].node_id == 7


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk_or_skip(tmp_path / "small", "1m") as mounted:
        yield mounted


def test_a_full_disk_at_start_is_one_sentence(disk: Path) -> None:
    fill_up(disk / "filler")
    refused = serve("listeners=127.0.0.1:0", f"log.dirs={disk}/data")
    assert_refused(refused, str(disk), "No space left")


def test_a_read_only_directory_at_start_is_one_sentence(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    refused = serve("listeners=127.0.0.1:0", f"log.dirs={disk}/data")
    assert_refused(refused, str(disk), "Read-only")


def test_the_ready_file_says_where_and_goes_at_the_end(tmp_path: Path) -> None:
    with start_fresh_daemon(tmp_path) as daemon:
        ready = json.loads((tmp_path / "ready.json").read_text())
        assert set(ready) == {"pid", "host", "port", "ports", "metrics_port", "log_dirs"}
        assert ready["ports"] == {"PLAINTEXT": ready["port"]}
        assert ready["pid"] == daemon.pid
        assert ready["log_dirs"] == [str(daemon.data_directory)]
        socket.create_connection((ready["host"], ready["metrics_port"]), timeout=30).close()
    assert not (tmp_path / "ready.json").exists()


def test_the_ready_file_can_be_a_line_of_standard_output(tmp_path: Path) -> None:
    settings = ["listeners=127.0.0.1:0", "metrics.listener=127.0.0.1:0", f"log.dirs={tmp_path}"]
    options = ["--stop-with-stdin", "--ready-file", "-", *(word for each in settings for word in ("--set", each))]
    command = [sys.executable, "-m", "barnabas", "serve", *options]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        ready = json.loads(broker.stdout.readline())
        socket.create_connection((ready["host"], ready["port"]), timeout=30).close()
        broker.stdin.close()
        assert broker.wait(EXIT_TIMEOUT_S) == 0
        assert ready["pid"] == broker.pid
        assert broker.stdout.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_and_everything_is_there_again(
    tmp_path: Path, batch: Batch, number: signal.Signals
) -> None:
    with start_fresh_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("kept", partitions=2, segment_bytes="4096", retention_ms="-1")
            for n in range(100):
                assert client.produce("kept", batch(b"%d" % n * 50), n % 2).error == 0
        assert daemon.stop(number) == 0
        assert (daemon.data_directory / ".kafka_cleanshutdown").exists()
        assert not (daemon.data_directory / ".lock").exists()
        daemon.start()
        with WireClient(daemon.host, daemon.port) as client:
            assert [client.end_offset("kept", partition) for partition in (0, 1)] == [50, 50]
            assert client.fetch("kept", 0).data


def test_a_stop_answers_the_long_polls_and_closes_the_connections(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, ThreadPoolExecutor(1) as stopper:
        with WireClient(daemon.host, daemon.port) as idle, WireClient(daemon.host, daemon.port) as waiting:
            idle.create_topic("t")
            for _ in range(2):  # the second waits after the first
                waiting.send(fetch_request("t", 0, max_wait_ms=25_000))
            idle.call(MetadataRequest.of_names([]))
            stopped = stopper.submit(daemon.stop)
            for _ in range(2):
                answer = waiting.receive()
                assert answer.topics[0].partitions[0].error == 0
            assert waiting.is_closed_by_broker()
            assert idle.is_closed_by_broker()
        assert stopped.result(EXIT_TIMEOUT_S) == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path) as daemon, ThreadPoolExecutor(1) as stopper:
        pid = daemon.pid
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t", max_message_bytes="30000000")
            client.produce("t", batch(b"x" * 20_000_000))
            # The client does not read this response, so the drain waits for it.
            client.send(fetch_request("t", 0))
            stopped = stopper.submit(daemon.stop)
            wait_for_log(daemon, "stopping, signal=SIGTERM")
            os.kill(pid, signal.SIGTERM)
            assert stopped.result(EXIT_TIMEOUT_S) == 128 + signal.SIGTERM
        assert "second signal" in daemon.log


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, batch: Batch) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("killed", segment_bytes="8192")
            for n in range(200):
                assert client.produce("killed", batch(b"%d" % n * 20)).base_offset == n
        daemon.restart(clean=False)
        with WireClient(daemon.host, daemon.port) as client:
            assert client.end_offset("killed") == 200
            assert client.produce("killed", batch()).base_offset == 200


def test_max_connections_refuses_the_one_too_many(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "max.connections=2") as daemon:
        with WireClient(daemon.host, daemon.port) as one, WireClient(daemon.host, daemon.port) as two:
            for client in (one, two):
                client.call(MetadataRequest.of_names([]))
            with WireClient(daemon.host, daemon.port) as three:
                assert three.is_closed_by_broker()
            one.call(MetadataRequest.of_names([]))
        assert "max.connections=2 are open" in daemon.log


def test_an_idle_connection_is_closed_and_a_waiting_one_is_not(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "connections.max.idle.ms=500") as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("t")
        with WireClient(daemon.host, daemon.port) as idle, WireClient(daemon.host, daemon.port) as waiting:
            waiting.send(fetch_request("t", 0, max_wait_ms=2_000))
            assert idle.is_closed_by_broker()
            assert waiting.receive().topics[0].partitions[0].error == 0


def test_several_listeners_tell_their_own_advertised_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        inside = probe.getsockname()[1]
    with start_daemon(
        tmp_path,
        f"listeners=OUT://127.0.0.1:0,IN://127.0.0.1:{inside}",
        "advertised.listeners=OUT://broker.example:19092,IN://127.0.0.1:0",
        "listener.security.protocol.map=OUT:PLAINTEXT,IN:PLAINTEXT",
    ) as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            address = client.call(MetadataRequest.of_names([])).brokers[0]
            assert (address.host, address.port) == ("broker.example", 19092)
        with WireClient("127.0.0.1", inside) as client:
            address = client.call(MetadataRequest.of_names([])).brokers[0]
            assert (address.host, address.port) == ("127.0.0.1", inside)


def test_topics_configs_and_ids_are_there_after_a_restart(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as client:
            client.create_topic("named", partitions=3, retention_ms="12345")
            before = client.call(MetadataRequest.of_names(None))
        daemon.restart()
        with WireClient(daemon.host, daemon.port) as client:
            after = client.call(MetadataRequest.of_names(None))
    assert before.cluster_id == after.cluster_id
    assert before.topics[0].topic_id == after.topics[0].topic_id
    assert len(after.topics[0].partitions) == 3


def test_a_start_loads_nothing_that_waits_for_its_first_use() -> None:
    late = {"pyspark", "pyarrow", "kio", "prometheus_client", "barnabas.clients", "barnabas.pipeline"}
    late |= {"barnabas.broker.groups.consumer.groups", "barnabas.broker.groups.offsets.loader"}
    late |= {"barnabas.broker.handlers.groups.join_group", "barnabas.broker.read_only"}
    late |= {"barnabas.broker.groups.classic.groups", "barnabas.broker.storage.cleaning.rewriting.cleaner"}
    late |= {"barnabas.broker.metadata.topics", "barnabas.broker.metadata.configs", "barnabas.broker.metadata.features"}
    late |= {f"barnabas.protocol.messages.{name}" for name in ("topics.topics", "cluster.configs", "security.acls")}
    late |= {"barnabas.protocol.messages.groups.offset_commit", "barnabas.protocol.messages.data.describe_producers"}
    late |= {"cryptography", "jwt", "re2", "rich", "email", "json", "shutil", "encodings.idna"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys, barnabas.broker.server; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not late & set(done.stdout.split())
