"""Sends responses on one connection, in order: bytes through the transport, record slices from their files.

A slice is sent in one of three ways, by its size and by whether the page cache has it:
  - small (a response's slices together below SENDFILE_MIN_BYTES): read, and sent with the other bytes in one call;
  - large and cached: `os.sendfile` from the segment file to a duplicate of the socket's descriptor (uvloop refuses
    `add_writer` on a transport's own);
  - not cached: read by the blocking-I/O executor, so that the disk never stalls the loop.
Where sendfile does not work (TLS, a file system without it, no descriptor left for the duplicate) bytes are copied.

The transport's high-water mark is 0: `write` goes to the kernel immediately, and `pause_writing` means that the kernel
did not accept everything. While paused nothing more is handed over, which is the connection's back-pressure: the next
request is not served before the kernel has this response.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.file_records import read_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from barnabas.broker.network.response_frame import ResponseFrame
    from barnabas.broker.probes import ConnectionProbe
    from barnabas.broker.storage.files.file_records import FileSlice

SENDFILE_MIN_BYTES: Final = 16 * 1024
"""Below this a copy is cheaper than the second system call (benchmarks/, fetch lines)."""

HOLD_BYTES_MAX: Final = 64 * 1024
"""Responses to pipelined requests are held back up to this size, to be sent together."""

CHUNK_BYTES: Final = 1024 * 1024
"""Largest part of a slice that is sent or read at a time."""


_SENDFILE_UNAVAILABLE: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMFILE, errno.ENFILE})
"""Errors of sendfile on file systems without it, and of dup without a free descriptor: then bytes are copied."""

_FILE_FAILURES: Final = (OSError, StorageError)
"""Errors of a file or of the socket."""


class _Progress:
    """How much of a slice was sent."""

    __slots__ = ("_warm", "records", "remaining", "sent")

    def __init__(self, records: FileSlice) -> None:
        self.records = records
        self.sent = 0
        self.remaining = records.size
        self._warm: bool | None = None

    @property
    def position(self) -> int:
        """Position of the next byte in the file."""
        return self.records.position + self.sent

    def is_warm(self) -> bool:
        """Return whether the page cache has the slice; one system call per slice."""
        if self._warm is None:
            self._warm = self.records.is_warm()
        return self._warm


class ResponseSender:
    """The writing half of a connection. `send` never blocks; `on_idle` is called when everything has left."""

    __slots__ = (
        "_closed",
        "_copies",
        "_executor",
        "_held",
        "_held_bytes",
        "_loop",
        "_on_failure",
        "_on_idle",
        "_paused",
        "_probe",
        "_queue",
        "_reading",
        "_socket_fd",
        "_transport",
        "_watching",
        "last_progress",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        probe: ConnectionProbe,
        *,
        on_idle: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`on_idle` is called after a `send` that returned False; `on_failure` when a file or the socket fails."""
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._loop = loop
        self._executor = executor
        self._probe = probe
        self._on_idle = on_idle
        self._on_failure = on_failure
        self._queue: deque[bytes | _Progress] = deque()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._paused = False
        self._watching = False
        self._reading = False
        self._closed = False
        self._copies = transport.get_extra_info("sslcontext") is not None
        """Records are copied through the transport: sendfile would write them past TLS, unencrypted."""
        self._socket_fd = -1
        self.last_progress = 0.0
        """The loop's time when a slow client last accepted a part of a response."""

    def send(self, response: ResponseFrame) -> bool:
        """Send one response. Returns True when the kernel has all of it; otherwise `on_idle` is called later."""
        header, parts = response
        probe = self._probe
        probe.sent_bytes += len(header)
        if self._held:
            self._write_held()
        if not parts:
            self._transport.write(header)
            return not self._paused
        try:
            small = self._small_parts(parts)
        except _FILE_FAILURES as error:
            self._fail(error)
            return False
        if small is not None:
            self._transport.writelines([header, *small])
            probe.sent_bytes += sum([len(piece) for piece in small])
            return not self._paused
        self._transport.write(header)
        self._queue.extend([part if isinstance(part, bytes) else _Progress(part) for part in parts])
        return self._pump()

    def hold(self, response: ResponseFrame) -> bool:
        """Hold a small response back until `flush` or `send`, in the same turn. Returns False: send it instead."""
        if response.parts or self._held_bytes > HOLD_BYTES_MAX:
            return False
        self._held.append(response.header)
        self._held_bytes += len(response.header)
        self._probe.sent_bytes += len(response.header)
        return True

    def hold_bytes(self, responses: bytes) -> bool:
        """Hold small responses back as `hold` does. Returns whether more may be held before `flush`."""
        self._held.append(responses)
        self._held_bytes += len(responses)
        self._probe.sent_bytes += len(responses)
        return self._held_bytes <= HOLD_BYTES_MAX

    def send_bytes(self, responses: bytes) -> bool:
        """Send responses without file slices, as `send` does, while none is held or queued."""
        self._probe.sent_bytes += len(responses)
        self._transport.write(responses)
        return not self._paused

    def flush(self) -> bool:
        """Send the held responses. Returns True when the kernel has them; otherwise `on_idle` is called later."""
        if self._held:
            self._write_held()
        return not self._paused

    def _write_held(self) -> None:
        held = self._held
        data = held[0] if len(held) == 1 else b"".join(held)
        held.clear()
        self._held_bytes = 0
        self._transport.write(data)

    def pause_writing(self) -> None:
        """The kernel did not accept everything written."""
        self._paused = True

    def resume_writing(self) -> None:
        """The kernel has accepted everything written."""
        self._paused = False
        self.last_progress = self._loop.time()
        if not self._closed and self._pump():
            self._on_idle()

    def close(self) -> None:
        """Drop the queue, the callbacks and the duplicate descriptor. May be called repeatedly."""
        self._closed = True
        self._on_idle = self._on_failure = _not_called  # without the cycle, a closed connection is garbage at once
        self._queue.clear()
        if self._watching:
            self._loop.remove_writer(self._socket_fd)
            self._watching = False
        if self._socket_fd >= 0:
            os.close(self._socket_fd)
            self._socket_fd = -1

    def _small_parts(self, parts: Sequence[bytes | FileSlice]) -> list[bytes | bytearray] | None:
        """Return all the parts' bytes if the slices are small and in the page cache, else None."""
        slices_bytes = 0
        for part in parts:
            if not isinstance(part, bytes):
                slices_bytes += part.size
        if slices_bytes >= SENDFILE_MIN_BYTES:
            return None
        data: list[bytes | bytearray] = []
        for part in parts:
            piece = part if isinstance(part, bytes) else _read_if_warm(part.fd, part.position, part.size)
            if piece is None:
                return None
            data.append(piece)
        return data

    def _pump(self) -> bool:
        """Send from the queue until it is empty (True) or has to wait (False)."""
        try:
            return self._send_queue()
        except _FILE_FAILURES as error:
            self._fail(error)
            return False

    def _send_queue(self) -> bool:
        while self._queue:
            if self._paused or self._watching or self._reading:
                return False
            progress = self._queue[0]
            if isinstance(progress, bytes):
                self._queue.popleft()
                self._probe.sent_bytes += len(progress)
                self._transport.write(progress)
                continue
            size = min(progress.remaining, CHUNK_BYTES)
            if not progress.is_warm():
                self._read_cold(progress, size)
                return False
            if size >= SENDFILE_MIN_BYTES and not self._copies:
                if not self._sendfile(progress, size):
                    return False
                continue
            data = _read_if_warm(progress.records.fd, progress.position, size)
            if data is None:
                self._read_cold(progress, size)
                return False
            self._advance(progress, size)
            self._transport.write(data)
        return not self._paused

    def _advance(self, progress: _Progress, size: int) -> None:
        progress.sent += size
        progress.remaining -= size
        self._probe.sent_bytes += size
        if not progress.remaining:
            self._queue.popleft()

    def _sendfile(self, progress: _Progress, size: int) -> bool:
        """Send up to `size` bytes from the file. Returns False when the socket is full; it is watched from then on."""
        try:
            if self._socket_fd < 0:
                self._socket_fd = os.dup(self._transport.get_extra_info("socket").fileno())
            sent = os.sendfile(self._socket_fd, progress.records.fd, progress.position, size)
        except BlockingIOError:
            self._watching = True
            self._loop.add_writer(self._socket_fd, self._writable)
            return False
        except OSError as error:
            if error.errno not in _SENDFILE_UNAVAILABLE:
                raise
            self._copies = True
            return True
        if sent == 0:
            raise OSError(errno.EIO, f"the segment file ends before position {progress.position}")
        self._advance(progress, sent)
        return True

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket_fd)
        self._watching = False
        self.last_progress = self._loop.time()
        if self._pump():
            self._on_idle()

    def _read_cold(self, progress: _Progress, size: int) -> None:
        self._reading = True
        future = self._loop.run_in_executor(self._executor, read_exactly, progress.records.fd, progress.position, size)
        future.add_done_callback(lambda done: self._cold_read_done(progress, size, done))

    def _cold_read_done(self, progress: _Progress, size: int, future: asyncio.Future[bytes]) -> None:
        self._reading = False
        error = future.exception()
        if self._closed:
            return
        if error is not None:
            self._fail(cast("Exception", error))
            return
        self.last_progress = self._loop.time()
        self._advance(progress, size)
        self._transport.write(future.result())
        if self._pump():
            self._on_idle()

    def _fail(self, error: Exception) -> None:
        """Close the connection: a frame that has begun cannot become an error response."""
        self._queue.clear()
        self._on_failure(error)


def _not_called(*_: object) -> None:
    """Stand in for the callbacks of a closed sender."""


def _read_if_warm(fd: int, position: int, size: int) -> bytes | bytearray | None:
    """Read `size` bytes of a file, or return None if that would wait for the disk."""
    data = bytearray(size)
    try:
        got = os.preadv(fd, (data,), position, os.RWF_NOWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return read_exactly(fd, position, size)  # tmpfs and similar: always in memory
    return data if got == size else None
