"""A server that forks `barnabas ...` from a process with its modules imported.

A command in an interpreter of its own takes 400 ms of CPU for imports, and a broker 500 ms; a forked one 50 to 150 ms.
It is a process like any other: with its own descriptors, environment, session and exit code. Not for tests of the
start itself, of memory, of mounts and privileges, or of environment variables that are read while modules are imported,
failpoints excepted.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
TIMEOUT_S: Final = 60.0
FAULT_FILE: Final = "sitecustomize.py"

_PRELOADED: Final = (
    "barnabas.broker.node",
    "barnabas.broker.server",
    "barnabas.clients.admin.admin",
    "barnabas.clients.consumer.consumer",
    "barnabas.clients.membership.consumer_membership",
    "barnabas.clients.producer.producer",
    "barnabas.clients.producer.transactions",
    "barnabas.commands.config",
    "barnabas.commands.kafka_session",
    "barnabas.commands.main",
    "barnabas.commands.offsets",
    "barnabas.commands.output",
    "barnabas.commands.records.consume",
    "barnabas.commands.records.line_sender",
    "barnabas.commands.records.produce",
    "barnabas.commands.records.record_printer",
    "barnabas.commands.serve",
    "barnabas.commands.session",
    "barnabas.commands.topic.partition",
    "barnabas.commands.topic.topic",
)


class ForkedProcess:
    """The part of `subprocess.Popen` that tests use. `stdin` is the writable end of its pipe. Thread-safe."""

    def __init__(self, pid: int, channel: socket.socket, stdin: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.returncode: int | None = None
        self._channel = channel
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs, or while another thread waits for its exit."""
        if not self._waiting.acquire(blocking=False):
            return self.returncode
        try:
            return self._wait(0)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._waiting.release()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit and return its code. Raises TimeoutExpired."""
        with self._waiting:
            return self._wait(timeout)

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = _receive_int(self._channel)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("barnabas", timeout or 0) from None
            self._channel.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and its exit code is on the way
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(9)


class ForkServer:
    """Starts processes. It ends with the process that created it."""

    def __init__(self, *modules: str) -> None:
        """`modules` are imported besides those of brokers and clients."""
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forking", str(theirs.fileno()), *modules],
                cwd=REPOSITORY,
                pass_fds=[theirs.fileno()],
                stdout=subprocess.DEVNULL,  # not a terminal, for which output would be buffered by lines
                start_new_session=True,
            )
        self._socket.settimeout(TIMEOUT_S)

    def start(
        self, arguments: list[str], *, environ: Mapping[str, str], cwd: str, stdout: int, stderr: int
    ) -> ForkedProcess:
        """Start `barnabas` with arguments; `stdout` and `stderr` are descriptors."""
        order = json.dumps([arguments, dict(environ), cwd]).encode()
        channel, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        descriptors = [read_end, stdout, stderr, theirs.fileno()]
        with theirs, self._lock:
            socket.send_fds(self._socket, [len(order).to_bytes(4, "big")], descriptors)
            self._socket.sendall(order)
            os.close(read_end)
        channel.settimeout(TIMEOUT_S)
        return ForkedProcess(_receive_int(channel), channel, open(write_end, "wb", buffering=0))


@cache
def fork_server() -> ForkServer:
    """Return the server of this test process: its start takes as long as one command's."""
    return ForkServer()


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("the other side has ended")
        data += piece
    return data


def _receive_int(connection: socket.socket) -> int:
    return int.from_bytes(_receive(connection, 4), "big", signed=True)


def _serve(connection: socket.socket, modules: list[str]) -> None:
    """Fork a process for each order, until the other side ends."""
    for name in (*_PRELOADED, *modules):
        import_module(name)
    gc.freeze()
    while True:
        size, descriptors, _, _ = socket.recv_fds(connection, 4, 4)
        if not size:
            return
        arguments, environ, cwd = json.loads(_receive(connection, int.from_bytes(size, "big")))
        *streams, channel = descriptors
        if os.fork() == 0:
            connection.close()
            _watch(arguments, environ, cwd, streams, socket.socket(fileno=channel))
        for descriptor in descriptors:
            os.close(descriptor)
        _reap()


def _watch(arguments: list[str], environ: dict[str, str], cwd: str, streams: list[int], channel: socket.socket) -> None:
    """Fork the process itself; send its id and then its exit code. Does not return."""
    child = os.fork()
    if child == 0:
        channel.close()
        _run(arguments, environ, cwd, streams)
    for descriptor in streams:
        os.close(descriptor)
    channel.sendall(child.to_bytes(4, "big"))
    _, status = os.waitpid(child, 0)
    try:
        channel.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    except BrokenPipeError:  # the test is over
        pass
    os._exit(0)


def _run(arguments: list[str], environ: dict[str, str], cwd: str, streams: list[int]) -> Any:
    """Run a command. Always raises SystemExit, which ends the process as its interpreter would."""
    from barnabas.broker.storage.files import failpoints
    from barnabas.commands.entry import main

    os.setsid()
    os.chdir(cwd)
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environ)
    failpoints.arm_from(environ.get(failpoints.VARIABLE, ""))
    _run_faults(environ.get("PYTHONPATH", ""))
    sys.argv = ["barnabas", *arguments]
    main()


def _run_faults(folders: str) -> None:
    """Run the `sitecustomize` modules of folders that are not on the path yet, as a new interpreter would."""
    for folder in filter(None, folders.split(os.pathsep)):
        file = Path(folder, FAULT_FILE)
        if folder not in sys.path and file.exists():
            exec(compile(file.read_text(), str(file), "exec"), {"__name__": file.stem})


def _reap() -> None:
    """Collect the watching processes that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
