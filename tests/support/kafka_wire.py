"""A blocking client of Kafka's protocol for tests that need to see or to break single frames.

Its bytes are kio's own, written and read by code that shares nothing with the broker's.

    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = kafka.call("api_versions", 3, client_software_name="test", client_software_version="1")
"""

from __future__ import annotations

import io
import socket
import struct
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any

from kio.serial import entity_reader, entity_writer

TIMEOUT_S = 30.0


def schema(api: str, version: int, kind: str) -> ModuleType:
    """kio's module of a message: kind is "request" or "response"."""
    return import_module(f"kio.schema.{api}.v{version}.{kind}")


def message_type(api: str, version: int, kind: str) -> Any:
    """The class of a whole message."""
    name = "".join(word.capitalize() for word in (*api.split("_"), kind))
    return getattr(schema(api, version, kind), name)


def written(entity: Any) -> bytes:
    """The bytes of an entity."""
    buffer = io.BytesIO()
    kind: Any = type(entity)
    entity_writer(kind)(buffer, entity)
    return buffer.getvalue()


def read(kind: Any, data: bytes) -> Any:
    """The entity that is all of `data`."""
    entity, size = entity_reader(kind)(data, 0)
    assert size == len(data), f"{len(data) - size} bytes are left over behind a {kind.__name__}"
    return entity


def request_frame(request: Any, correlation_id: int, client_id: str | None = "wire") -> bytes:
    """A whole request with its size in front."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return framed(written(header) + written(request))


def framed(data: bytes) -> bytes:
    """`data` behind its size."""
    return struct.pack(">i", len(data)) + data


def answer_of(api: str, version: int, frame: bytes) -> tuple[int, Any]:
    """The correlation id and the entity of an answer's frame, without its size field."""
    kind = message_type(api, version, "response")
    header, size = entity_reader(kind.__header_schema__)(frame, 0)
    return header.correlation_id, read(kind, frame[size:])


class KafkaWire:
    """One connection. `call` sends a request and reads its answer; `send` and `receive` do one half each."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.correlation_id = 0

    def __enter__(self) -> KafkaWire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, request: Any) -> None:
        """Send an entity with the next correlation id, without waiting for its answer."""
        self.correlation_id += 1
        self.socket.sendall(request_frame(request, self.correlation_id))

    def receive(self, api: str, version: int) -> Any:
        """The next answer; its correlation id must be the last request's."""
        correlation_id, answer = answer_of(api, version, self.receive_frame())
        assert correlation_id == self.correlation_id
        return answer

    def receive_frame(self) -> bytes:
        """The next answer's bytes behind its size."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def call(self, api: str, version: int, **fields: Any) -> Any:
        """The answer to a request with these fields."""
        self.send(message_type(api, version, "request")(**fields))
        return self.receive(api, version)

    def is_closed_by_broker(self) -> bool:
        """Whether the broker ends the connection without another byte (waits for it)."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
