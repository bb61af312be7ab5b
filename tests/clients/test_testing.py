"""A broker in a user's tests: the process, and the pytest plugin in a folder outside of this project."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

from barnabas.clients.testing import BrokerProcess, BrokerProcessError, broker
from barnabas.protocol.errors import BrokerError
from tests.support.daemon import REPOSITORY
from tests.support.eventually import eventually
from tests.support.wire import WireClient

EXIT_TIMEOUT_MS = 20_000
UNUSED_PLUGINS = ("anyio", "cacheprovider", "hypothesispytest", "xdist", "asyncio", "random_order", "timeout")
"""Plugins of this project's own tests, whose import takes 1.4 s of CPU in each run."""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which the distribution's entry points are found, whatever was installed when."""
    entry_points = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]
    metadata = tmp_path / "site" / "declared-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1\n")
    lines = [f"[pytest11]\n{name} = {target}\n" for name, target in entry_points["pytest11"].items()]
    (metadata / "entry_points.txt").write_text("".join(lines))
    return {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{metadata.parent}"}


def run_pytest(directory: Path, environ: dict[str, str], program: str) -> subprocess.CompletedProcess[str]:
    directory.mkdir(exist_ok=True)
    (directory / "test_theirs.py").write_text(program)
    command = [sys.executable, "-m", "pytest", "-q", "--basetemp", str(directory / "temp")]
    command += [word for plugin in UNUSED_PLUGINS for word in ("-p", f"no:{plugin}")]
    return subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, timeout=100, check=False)


def wait_for_exit(pid: int) -> None:
    """Returns once the process is gone; it need not be a child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(EXIT_TIMEOUT_MS), f"process {pid} is still there"
    finally:
        os.close(descriptor)


def test_the_plugin_gives_one_broker_and_a_fresh_topic_for_each_test(tmp_path: Path, environ: dict[str, str]) -> None:
    done = run_pytest(
        tmp_path / "theirs",
        environ,
        """
import pytest
seen = []

@pytest.mark.parametrize("number", [1, 2])
def test_a_topic(barnabas_broker, barnabas_topic, number):
    topic = barnabas_topic(partitions=3, retention_ms=-1)
    assert barnabas_broker.running and topic != barnabas_topic()
    seen.append((barnabas_broker.pid, topic))

def test_afterwards():
    (first, topic), (second, other) = seen
    assert first == second and topic != other
""",
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_a_failure_shows_the_brokers_log_and_the_broker_is_stopped(tmp_path: Path, environ: dict[str, str]) -> None:
    done = run_pytest(
        tmp_path / "theirs",
        environ,
        "def test_it(barnabas_broker):\n    print('pid', barnabas_broker.pid)\n    assert False\n",
    )

    assert done.returncode == 1
    assert "- barnabas broker (" in done.stdout
    assert "ready, seconds=" in done.stdout
    (pid,) = re.findall(r"^pid (\d+)$", done.stdout, flags=re.MULTILINE)
    wait_for_exit(int(pid))


def test_the_secure_broker_of_the_plugin(tmp_path: Path, environ: dict[str, str]) -> None:
    done = run_pytest(
        tmp_path / "theirs",
        environ,
        """
import asyncio
from barnabas import Admin, AdminConfig

def test_topics(barnabas_secure_broker):
    async def topics():
        config = AdminConfig(bootstrap=barnabas_secure_broker.bootstrap, security=barnabas_secure_broker.security)
        async with Admin(config) as admin:
            return await admin.list_topics()

    barnabas_secure_broker.create_topic("orders")
    assert "orders" in [topic.name for topic in asyncio.run(topics())]

def test_failure(barnabas_secure_broker):
    print("pid", barnabas_secure_broker.pid)
    assert False
""",
    )

    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "- barnabas broker (" in done.stdout
    (pid,) = re.findall(r"^pid (\d+)$", done.stdout, flags=re.MULTILINE)
    wait_for_exit(int(pid))


def test_settings_of_a_conftest_reach_the_broker(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(scope='session')\ndef barnabas_settings():\n    return {'node.id': 7}\n"
    )

    done = run_pytest(
        tmp_path / "theirs",
        environ,
        "def test_it(barnabas_broker):\n    assert '\\nnode.id=7\\n' in"
        " (barnabas_broker.data_directory / 'meta.properties').read_text()\n",
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_session_without_the_fixtures_loads_neither_the_client_nor_a_broker(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    done = run_pytest(
        tmp_path / "theirs",
        environ,
        "import sys\n\ndef test_it():\n    ours = {name for name in sys.modules if name.startswith('barnabas.')}\n"
        "    plugin = {'barnabas.clients', 'barnabas.clients.pytest_plugin', 'barnabas.clients.broker_process'}\n"
        "    assert ours <= plugin, ours\n",
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_broker_ends_with_the_process_that_started_it_even_when_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time\nfrom barnabas.clients.testing import BrokerProcess\n"
        f"running = BrokerProcess(pathlib.Path({str(tmp_path)!r}))\nrunning.start()\n"
        "print(running.pid, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    wait_for_exit(pid)
    assert "stopped, clean=True" in (tmp_path / "daemon.log").read_text()


def test_the_context_manager_starts_a_broker_and_removes_its_directory() -> None:
    with broker({"num.partitions": 2}) as running:
        directory, pid = running.directory, running.pid
        running.create_topic("orders", partitions=3, configs={"retention.ms": "-1"})
        with WireClient(running.host, running.port) as client:
            assert client.end_offset("orders", 2) == 0

    wait_for_exit(pid)
    assert not directory.exists()


def test_a_topic_can_be_created_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def make() -> None:
        running.create_topic("orders")

    with BrokerProcess(tmp_path) as running:
        asyncio.run(make())
        with pytest.raises(BrokerError, match="orders"):
            running.create_topic("orders")


def test_a_broker_that_does_not_start_is_an_error_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(BrokerProcessError, match=r"before it was ready[\s\S]*num\.partitions"):
        BrokerProcess(tmp_path, {"num.partitions": "none"}).start()


def test_the_pipe_of_a_broker_that_has_ended_by_itself_is_closed(tmp_path: Path) -> None:
    def end_by_itself() -> IO[bytes]:
        process = running._process
        assert process is not None
        assert process.stdin is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait(EXIT_TIMEOUT_MS / 1000)
        return process.stdin

    with BrokerProcess(tmp_path) as running:
        first = end_by_itself()
        running.start()
        assert first.closed
        second = end_by_itself()
    assert second.closed


@pytest.mark.parametrize("name", ["port", "metrics_port"])
def test_a_broker_comes_back_when_another_program_has_its_port_for_a_while(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path) as running, ThreadPoolExecutor(1) as thread:
        running.stop()
        with socket.create_server((running.host, getattr(running, name))):
            starting = thread.submit(running.start)
            eventually(lambda: "cannot listen on" in running.log, what="a refused start")
        starting.result(EXIT_TIMEOUT_MS / 1000)
        assert running.running


def test_foreign_modules_beside_the_tests_do_not_get_into_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "__init__.py").write_text("raise AssertionError('the wrong barnabas')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BARNABAS_NUM_PARTITIONS", "none")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))

    with BrokerProcess(tmp_path / "own") as running:
        assert running.running
