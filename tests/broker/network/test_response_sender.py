"""The sending half of a connection, on a real socket: it copies where sendfile fails, and closing leaks nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest
import uvloop

from barnabas.broker.network import response_sender
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.response_sender import ResponseSender
from barnabas.broker.probes import ConnectionProbe
from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.files.open_files import FileHandle

TIMEOUT_S = 30
CONTENT = bytes(range(251)) * 40_000
"""10 MB: more than a socket buffer holds."""


class Sending(asyncio.Protocol):
    """A connection that only sends, and counts its sender's calls."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor
        self.made = asyncio.Event()
        self.idle = asyncio.Event()
        self.failure: Exception | None = None
        self.sender: ResponseSender
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.sender = ResponseSender(
            self.transport,
            asyncio.get_running_loop(),
            self._executor,
            ConnectionProbe(),
            on_idle=self.idle.set,
            on_failure=self._failed,
        )
        self.made.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.sender.close()

    def pause_writing(self) -> None:
        self.sender.pause_writing()

    def resume_writing(self) -> None:
        self.sender.resume_writing()

    def _failed(self, error: Exception) -> None:
        self.failure = error
        self.transport.abort()


Scenario = Callable[[Sending, socket.socket], Awaitable[None]]


def play(scenario: Scenario) -> None:
    """Run `scenario` on a connected pair: the sending protocol, and the client's socket."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        failures: list[dict[str, object]] = []
        loop.set_exception_handler(lambda _, context: failures.append(context))
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        with ThreadPoolExecutor(1) as executor, theirs:
            sending = Sending(executor)
            await loop.create_connection(lambda: sending, sock=ours)
            await asyncio.wait_for(sending.made.wait(), TIMEOUT_S)
            try:
                await asyncio.wait_for(scenario(sending, theirs), TIMEOUT_S)
            finally:
                sending.transport.abort()
        assert failures == []

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def read(client: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes."""
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        part = await loop.sock_recv(client, min(size - len(data), 1 << 18))
        assert part, f"closed after {len(data)} of {size} bytes"
        data += part
    return bytes(data)


@pytest.fixture
def records(tmp_path: Path) -> FileSlice:
    """Return a slice in the middle of a file."""
    path = tmp_path / "segment.log"
    path.write_bytes(b"before" + CONTENT + b"behind")
    return FileSlice(FileHandle(os.open(path, os.O_RDONLY)), 6, len(CONTENT))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_the_file_system_has_no_sendfile_the_bytes_are_copied(
    records: FileSlice, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*arguments: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    async def scenario(sending: Sending, client: socket.socket) -> None:
        monkeypatch.setattr(os, "sendfile", refuse)
        sending.sender.send(ResponseFrame(b"header", [records]))
        assert sending.transport.get_write_buffer_size() <= response_sender.CHUNK_BYTES
        assert await read(client, 6 + len(CONTENT)) == b"header" + CONTENT
        await sending.idle.wait()

    play(scenario)


def test_without_a_descriptor_for_the_duplicate_the_bytes_are_copied(
    records: FileSlice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def scenario(sending: Sending, client: socket.socket) -> None:
        monkeypatch.setattr(os, "dup", refuse)
        sending.sender.send(ResponseFrame(b"header", [records]))
        assert await read(client, 6 + len(CONTENT)) == b"header" + CONTENT

    play(scenario)


def test_an_answer_to_a_slow_reader_is_whole_and_the_next_one_follows_it(records: FileSlice) -> None:
    async def scenario(sending: Sending, client: socket.socket) -> None:
        assert not sending.sender.send(ResponseFrame(b"header", [records, records]))
        assert await read(client, 6 + 2 * len(CONTENT)) == b"header" + CONTENT * 2
        await sending.idle.wait()
        assert sending.sender.send(ResponseFrame(b"next", [FileSlice(records._handle, 0, 8)]))
        assert await read(client, 12) == b"nextbefore" + CONTENT[:2]

    play(scenario)


@pytest.mark.parametrize("warm", [True, False])
def test_bytes_between_the_slices_arrive_in_their_place(
    records: FileSlice, monkeypatch: pytest.MonkeyPatch, warm: bool
) -> None:
    small = FileSlice(records._handle, 6, 1000)
    parts: list[bytes | FileSlice] = [records, b"one", small, b"two", b"three", records, small, b"end"]
    whole = b"header" + b"".join(part if isinstance(part, bytes) else part.read() for part in parts)

    async def scenario(sending: Sending, client: socket.socket) -> None:
        monkeypatch.setattr(FileSlice, "is_warm", lambda _: warm)
        assert not sending.sender.send(ResponseFrame(b"header", parts))
        assert await read(client, len(whole)) == whole
        await sending.idle.wait()
        assert sending.sender.send(ResponseFrame(b"small", [b"a", small, b"z"]))
        assert await read(client, 1007) == b"smalla" + CONTENT[:1000] + b"z"

    play(scenario)


def test_a_cold_slice_is_read_by_the_executor_and_arrives_whole(
    records: FileSlice, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()

    def read_exactly(fd: int, position: int, size: int) -> bytes:
        threads.add(threading.current_thread().name)
        return os.pread(fd, size, position)

    async def scenario(sending: Sending, client: socket.socket) -> None:
        monkeypatch.setattr(FileSlice, "is_warm", lambda _: False)
        monkeypatch.setattr(response_sender, "read_exactly", read_exactly)
        assert not sending.sender.send(ResponseFrame(b"header", [records]))
        assert await read(client, 6 + len(CONTENT)) == b"header" + CONTENT

    play(scenario)
    assert threads
    assert threading.current_thread().name not in threads


def test_a_client_that_goes_during_a_cold_read_gets_nothing_and_the_file_stays_open_until_it_is_read(
    records: FileSlice, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    got: list[bytes] = []

    def read_exactly(fd: int, position: int, size: int) -> bytes:
        reading.set()
        assert go_on.wait(TIMEOUT_S)
        got.append(os.pread(fd, size, position))
        return got[-1]

    async def scenario(sending: Sending, client: socket.socket) -> None:
        monkeypatch.setattr(FileSlice, "is_warm", lambda _: False)
        monkeypatch.setattr(response_sender, "read_exactly", read_exactly)
        sending.sender.send(ResponseFrame(b"header", [FileSlice(records._handle, 6, 1000)] * 20))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, reading.wait, TIMEOUT_S)
        sending.transport.abort()
        sending.sender.close()
        go_on.set()
        while not got:
            await asyncio.sleep(0)
        for _ in range(3):  # the executor's result returns to the loop
            await asyncio.sleep(0)
        assert sending.failure is None
        assert got == [CONTENT[:1000]]

    monkeypatch.setattr(response_sender, "SENDFILE_MIN_BYTES", 100)
    play(scenario)


def test_a_file_that_has_become_shorter_fails_the_connection(records: FileSlice, tmp_path: Path) -> None:
    async def scenario(sending: Sending, client: socket.socket) -> None:
        os.truncate(tmp_path / "segment.log", 1000)
        assert not sending.sender.send(ResponseFrame(b"header", [records]))
        while sending.failure is None:
            await asyncio.sleep(0)
        assert not sending.idle.is_set()

    play(scenario)


def test_closing_while_the_socket_is_full_leaves_no_descriptor_open(records: FileSlice) -> None:
    async def scenario(sending: Sending, client: socket.socket) -> None:
        before = open_descriptors()
        assert not sending.sender.send(ResponseFrame(b"header", [records]))
        assert open_descriptors() == before + 1  # the duplicated descriptor
        sending.sender.close()
        sending.sender.close()
        assert open_descriptors() == before
        sending.sender.resume_writing()
        assert not sending.idle.is_set()

    play(scenario)
