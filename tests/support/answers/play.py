"""Plays scripts of requests to one broker and notes the bytes of both directions.

A line of a recording is a comment that ends with the answer's error codes, a request (`>`) or its answer (`<`), in hex
and without the size field:

    # api_versions v3 success -> NONE
    > 0012...
    < 0000...
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from barnabas.protocol.errors import ErrorCode
from tests.support.answers.brokers import ports_of
from tests.support.answers.fixed import SEED
from tests.support.answers.requests import APIS, answered, build, codes, versions
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, framed, request_frame

CORRELATION_ID: Final = 7
CLOSED: Final = "closed"
_TOKENS: Final = frozenset({f"{verb}_delegation_token" for verb in ("create", "expire", "renew")})
"""APIs whose refusals have a time of -1, which kio does not read; the code is the first field."""
_ARROW: Final = " -> "
Values = Mapping[str, Any]


class Exchange(NamedTuple):
    """One request and its answer. `answer` is CLOSED for a connection that the broker closes."""

    api: str
    version: int
    case: str
    request: str
    answer: str

    @property
    def name(self) -> str:
        """What a difference and its acceptance name."""
        return f"{self.api} v{self.version} {self.case}"


def render(exchanges: Iterable[Exchange]) -> str:
    """Return the text of a recording."""
    return "".join(
        f"# {each.name}{_ARROW}{', '.join(sorted(answer_codes(each)))}\n> {each.request}\n< {each.answer}\n"
        for each in exchanges
    )


@cache
def answer_codes(exchange: Exchange) -> set[str]:
    """Return the names of the error codes in an answer: `?` where kio does not read it, CLOSED for none."""
    if exchange.answer == CLOSED:
        return {CLOSED}
    frame = bytes.fromhex(exchange.answer)
    answer = answered(exchange.api, exchange.version, frame)
    if answer is None and exchange.api in _TOKENS:
        (code,) = struct.unpack_from(">h", frame, 5 if exchange.version >= APIS[exchange.api].flexible_from else 4)
        return {ErrorCode(code).name}
    return {"?"} if answer is None else codes(answer) or {"NONE"}


def parse(text: str) -> list[Exchange]:
    """Return the exchanges of a recording."""
    found = []
    rows = text.splitlines()
    for heading, request, answer in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        api, version, case = heading.removeprefix("# ").partition(_ARROW)[0].split(" ", 2)
        found.append(Exchange(api, int(version[1:]), case, request[2:], answer[2:]))
    return found


class Play:
    """Connections to one broker, and what was said on them."""

    def __init__(self, daemon: Daemon) -> None:
        self.exchanges: list[Exchange] = []
        self._daemon = daemon
        self._ports = ports_of(daemon)
        self._connections: list[KafkaWire] = []
        self._names: set[tuple[str, int, str]] = set()
        self.main = self.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.socket.close()

    def connect(self, listener: str = "PLAINTEXT") -> KafkaWire:
        """Return a new connection."""
        connection = KafkaWire("127.0.0.1", self._ports[listener])
        self._connections.append(connection)
        return connection

    def log_in(self, user: str) -> KafkaWire:
        """Return a new connection of a user."""
        connection = self.connect("SECURE")
        self.quiet("sasl_handshake", {"mechanism": "PLAIN"}, on=connection)
        self.quiet("sasl_authenticate", {"auth_bytes": f"\0{user}\0secret".encode()}, on=connection)
        return connection

    def crash(self) -> None:
        """Kill the broker and start it again, which raises leader epochs; `main` is a new connection."""
        self._daemon.restart(clean=False)
        self._ports = ports_of(self._daemon)
        self.main = self.connect()

    def begin(self, api: str) -> None:
        """Begin the script of an API, with random bytes of its own."""
        (self._daemon.directory / SEED).write_text(api)

    def ask(self, api: str, version: int, case: str, values: Values, *, on: KafkaWire | None = None) -> Any:
        """Send a request, note both directions, and return the answer; None if the broker closed the connection."""
        answer = self._ask(api, version, case, values, on)
        return None if answer is None else answered(api, version, answer)

    def _ask(self, api: str, version: int, case: str, values: Values, on: KafkaWire | None) -> bytes | None:
        frame = request_frame(build(api, version, values), CORRELATION_ID, "wire")[4:]
        return self.send(api, version, case, frame, on=on)

    def send(self, api: str, version: int, case: str, frame: bytes, *, on: KafkaWire | None = None) -> bytes | None:
        """Send a frame, note both directions, and return the answer's frame, None if the broker closed."""
        answer = _exchange(on or self.main, frame)
        self._note(api, version, case, frame, answer)
        return answer

    def ask_beside(self, api: str, version: int, case: str, values: Values) -> Callable[[], Any]:
        """Send a request that waits, on a connection of its own; return what takes its answer and notes both."""
        connection = self.connect()
        self.quiet("list_groups", {}, on=connection)  # the broker has accepted the connection
        frame = request_frame(build(api, version, values), CORRELATION_ID, "wire")[4:]
        connection.socket.sendall(framed(frame))
        self.quiet("list_groups", {})  # it was sent later, so the broker has read both

        def take() -> Any:
            answer = connection.receive_frame()
            self._note(api, version, case, frame, answer)
            return answered(api, version, answer)

        return take

    def _note(self, api: str, version: int, case: str, frame: bytes, answer: bytes | None) -> None:
        assert (api, version, case) not in self._names, f"{api} v{version} {case}: twice"
        self._names.add((api, version, case))
        noted = CLOSED if answer is None else answer.hex()
        self.exchanges.append(Exchange(api, version, case, frame.hex(), noted))

    def quiet(self, api: str, values: Values, version: int | None = None, *, on: KafkaWire | None = None) -> Any:
        """Send a request of a set-up, in its newest version, and return the answer without noting it."""
        chosen = versions(api)[-1] if version is None else version
        return answered(api, chosen, self.quiet_frame(api, values, chosen, on=on))

    def quiet_frame(
        self, api: str, values: Values, version: int | None = None, *, on: KafkaWire | None = None
    ) -> bytes:
        """Send a request as `quiet` does, and return the answer's frame."""
        chosen = versions(api)[-1] if version is None else version
        answer = _exchange(on or self.main, request_frame(build(api, chosen, values), CORRELATION_ID, "wire")[4:])
        assert answer is not None, api
        return answer

    def each(
        self,
        api: str,
        case: str,
        values: Values | Callable[[int], Values],
        *,
        since: int = 0,
        on: KafkaWire | None = None,
    ) -> Any:
        """Ask once in each version of an API from `since` on, and return the newest answer.

        `values`: the same for all, or made for a version.
        """
        answer = None
        for version in versions(api):
            if version >= since:
                answer = self.ask(api, version, case, values(version) if callable(values) else values, on=on)
        return answer

    def last(self, api: str, case: str, values: Values, *, on: KafkaWire | None = None) -> Any:
        """Ask in an API's newest version."""
        return self.ask(api, versions(api)[-1], case, values, on=on)


def _exchange(connection: KafkaWire, frame: bytes) -> bytes | None:
    connection.socket.sendall(framed(frame))
    try:
        return connection.receive_frame()
    except (ConnectionError, EOFError):
        return None
