r"""A proxy that records the requests of clients; the source of tests/protocol/frames.

    BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 BARNABAS_COMPATIBILITY_RECORD=tests/protocol/frames \
        make interop ARGS="-k test_clients"

One file per client, one frame per line: the frame without its size, in hex. For each API and version, the smallest
frames of a few different sizes are kept: they are seeds for mutation, not a capture.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import defaultdict
from pathlib import Path

FRAMES_OF_EACH = 3
MAX_FRAME_BYTES = 2048
_CHUNK_BYTES = 1 << 16
_SIZE_BYTES = 4


class RecordingProxy:
    """Proxy on a free port of 127.0.0.1; set `upstream_port` once the broker runs."""

    def __init__(self) -> None:
        self.upstream_port = 0
        self.client = ""
        self._frames: dict[str, dict[bytes, dict[int, bytes]]] = defaultdict(lambda: defaultdict(dict))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def write(self, directory: Path) -> None:
        """Add the recorded frames to the files of their clients."""
        self._listener.close()
        directory.mkdir(parents=True, exist_ok=True)
        for client, by_version in self._frames.items():
            kept = [
                frames[size] for _, frames in sorted(by_version.items()) for size in sorted(frames)[:FRAMES_OF_EACH]
            ]
            name = client.lower().replace(" ", "-")
            (directory / f"{name}.hex").write_text("".join(f"{frame.hex()}\n" for frame in kept))

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.upstream_port))
                except OSError:  # the broker is restarting: the client will connect again
                    client.close()
                    continue
                threading.Thread(target=self._pump, args=(client, broker, self.client), daemon=True).start()
                threading.Thread(target=self._pump, args=(broker, client, None), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, name: str | None) -> None:
        pending = bytearray()
        with contextlib.suppress(OSError):  # one side closed its connection: both are closed below
            while chunk := source.recv(_CHUNK_BYTES):
                if name is not None:
                    pending += chunk
                    self._take_frames(name, pending)
                target.sendall(chunk)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _take_frames(self, name: str, pending: bytearray) -> None:
        while len(pending) >= _SIZE_BYTES:
            size = int.from_bytes(pending[:_SIZE_BYTES], "big")
            if len(pending) < _SIZE_BYTES + size:
                return
            frame = bytes(pending[_SIZE_BYTES : _SIZE_BYTES + size])
            del pending[: _SIZE_BYTES + size]
            if size <= MAX_FRAME_BYTES:  # the first four bytes are the API key and version
                self._frames[name][frame[:4]].setdefault(size, frame)
