"""A container engine for tests, started by tools/container-engine, with the project's image and compose file.

Every step is a command in its own process with a timeout; a failure shows the end of the command's output.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually
from tests.support.free_ports import free_ports

REPOSITORY = Path(__file__).resolve().parents[2]
ENGINE = REPOSITORY / "tools" / "container-engine"
IMAGE = "barnabas:latest"
BASE_IMAGE = ("python:3.11-slim", "python3 python3-venv python3-pip ca-certificates")
PROMETHEUS_IMAGE = ("prom/prometheus:latest", "prometheus ca-certificates", "/usr/bin/prometheus")
ENGINE_TIMEOUT_S = 600.0
BUILD_TIMEOUT_S = 900.0
COMMAND_TIMEOUT_S = 120.0
_SYS_ADMIN, _NET_ADMIN = 21, 12
_TAIL_CHARACTERS = 3000
# Package indexes depend on the environment, so the build gets only these settings.
_BUILD_ARGUMENTS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST")


def why_no_engine() -> str | None:
    """Return the reason why no engine can be started here, or None. It needs root with all capabilities, on Debian."""
    if os.geteuid() != 0:
        return "a container engine is brought up by root only"
    release = Path("/etc/os-release")
    if not release.exists() or "\nID=debian" not in "\n" + release.read_text():
        return "the container engine is installed from Debian's packages, and this is not Debian"
    status = Path("/proc/self/status").read_text()
    rights = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    if not (rights >> _SYS_ADMIN & 1 and rights >> _NET_ADMIN & 1):
        return "root here may not mount or make networks, so no container engine runs"
    return None


def run(
    command: Sequence[str],
    *,
    timeout_s: float = COMMAND_TIMEOUT_S,
    stdin: str = "",
    environ: Mapping[str, str] | None = None,
) -> str:
    """Run `command` in the repository; return its standard output.

    A failure is an AssertionError with the end of it.
    """
    try:
        done = subprocess.run(
            command,
            input=stdin,
            env={**os.environ, **(environ or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=REPOSITORY,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{' '.join(command)}: not done after {timeout_s:.0f} s") from error
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-_TAIL_CHARACTERS:]
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{tail}")
    return done.stdout


def get_json(url: str) -> Any | None:
    """Return the JSON at `url`, or None if no server responds."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


class Engine:
    """The container engine. Only an engine started by this run is stopped at the end."""

    def __init__(self) -> None:
        self._was_up = _answers()

    def start(self) -> None:
        """Start the engine, and create the stand-ins for the two base images."""
        run([str(ENGINE), "up"], timeout_s=ENGINE_TIMEOUT_S)
        run([str(ENGINE), "image", *BASE_IMAGE], timeout_s=ENGINE_TIMEOUT_S)
        if program := shutil.which("prometheus"):
            import_program(PROMETHEUS_IMAGE[0], Path(program))
        else:
            run([str(ENGINE), "image", *PROMETHEUS_IMAGE], timeout_s=ENGINE_TIMEOUT_S)

    def build(self) -> None:
        """Build the project's image from its Dockerfile."""
        arguments = [f"--build-arg={name}" for name in _BUILD_ARGUMENTS if name in os.environ]
        command = ["docker", "build", "--network", "host", "--pull=false", *arguments, "--tag", IMAGE, "."]
        run(command, timeout_s=BUILD_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the engine, unless it was running before."""
        if not self._was_up:
            run([str(ENGINE), "down"])


class Compose:
    """docker-compose.yml with a separate project name, published on free ports of this host."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.network = f"{project}_default"
        self.broker_port, self.metrics_port, self.prometheus_port, self.secure_port, tls_port = free_ports(5)
        self._tls_port = tls_port

    def __call__(self, *arguments: str) -> str:
        """Run one docker-compose command."""
        ports = {
            "BROKER_PORT": str(self.broker_port),
            "METRICS_PORT": str(self.metrics_port),
            "PROMETHEUS_PORT": str(self.prometheus_port),
            "SECURE_PORT": str(self.secure_port),
            "SECURE_TLS_PORT": str(self._tls_port),
        }
        return run(["docker-compose", "--project-name", self.project, *arguments], environ=ports)

    def container(self, service: str) -> str:
        """Return the id of a service's container."""
        return self("ps", "--quiet", service).strip()

    def state(self, service: str) -> Mapping[str, Any]:
        """Return Docker's State of a service's container: Status, ExitCode, Health, ..."""
        state: Mapping[str, Any] = json.loads(
            run(["docker", "inspect", "--format", "{{json .State}}", self.container(service)])
        )
        return state

    def wait_until_healthy(self, service: str) -> None:
        """Wait for the image's health check to pass; if it fails, raise AssertionError with the container's log."""

        def healthy() -> bool | None:
            state = self.state(service)
            assert state["Status"] == "running", f"{service} has ended\n{self.log(service)}"
            return True if state["Health"]["Status"] == "healthy" else None

        eventually(healthy, what=f"{service} is healthy\n{self.log(service)}")

    def log(self, service: str) -> str:
        """Return the end of a service's output."""
        return self("logs", "--no-color", "--tail", "40", service)


def import_program(image: str, program: Path) -> None:
    """Create an image, unless it exists, of this machine's program and the libraries that it is linked with.

    It takes a second; one of Debian's packages takes a minute of CPU.
    """
    if subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0:
        return
    libraries = re.findall(r"(/\S+) \(0x", run(["ldd", str(program)]))
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w", dereference=True) as archive:
            for path in (str(program), *libraries):
                archive.add(path)
        file.seek(0)
        changes = ["--change", f"ENTRYPOINT {json.dumps([str(program)])}"]
        subprocess.run(["docker", "import", *changes, "-", image], stdin=file, capture_output=True, check=True)


def _answers() -> bool:
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=30, check=False).returncode == 0
    except FileNotFoundError:
        return False
