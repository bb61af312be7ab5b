"""`openssl s_client` as a Kafka client: one connection and one request, and what both programs made of them."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

TIMEOUT_S = 20.0
_MARK = b"BARS"
_DESCRIBE_ACLS = 29
_ERROR_AT = len(_MARK) + 4
_SESSION = re.compile(r"^(New|Reused), (\S+), Cipher is (\S+)$", re.MULTILINE)
_ALERT = re.compile(r"SSL alert number (\d+)")


def need_openssl() -> None:
    """Skip the test without openssl on the PATH."""
    if shutil.which("openssl") is None:
        pytest.skip("not on the PATH: openssl")


@dataclass(frozen=True)
class Outcome:
    """The end of one connection."""

    version: str = ""
    """The version of TLS that introduced the negotiated suite, empty if there was no agreement."""
    cipher: str = ""
    is_resumed: bool = False
    error_code: int | None = None
    """Of DescribeAcls: 0 for a super user, 31 for others, None without an answer."""
    alert: int | None = None
    """The number of the broker's alert."""
    output: str = ""

    @property
    def is_served(self) -> bool:
        """Whether the broker answered the request."""
        return self.error_code is not None


def describe_acls() -> bytes:
    """Return the frame of DescribeAcls 1 for all ACLs: only super users get them here."""
    header = struct.pack(">hh", _DESCRIBE_ACLS, 1) + _MARK + struct.pack(">h", -1)
    any_acl = struct.pack(">bhbhhbb", 1, -1, 1, -1, -1, 1, 1)
    return struct.pack(">i", len(header + any_acl)) + header + any_acl


class Connection:
    """A running s_client."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._output = bytearray()
        self._deadline = time.monotonic() + TIMEOUT_S

    def command(self, letter: str, done: bytes) -> None:
        """Give s_client a command, and wait until it prints `done`: it drops input that arrives with a command."""
        start = len(self._output)
        self._send(letter.encode() + b"\n")
        assert self.read_until(done, start)

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # s_client has ended, and its output has the reason

    def read_until(self, pattern: bytes, start: int = 0) -> bool:
        """Read until a pattern appears at or after `start`; return False if s_client ends before."""
        assert self._process.stdout is not None
        wanted = re.compile(pattern, re.DOTALL)
        while not wanted.search(self._output, start):
            with selectors.DefaultSelector() as selector:
                selector.register(self._process.stdout, selectors.EVENT_READ)
                if not selector.select(self._deadline - time.monotonic()):
                    raise AssertionError(f"s_client is silent: {bytes(self._output)!r}")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                return False
            self._output += data
        return True

    def request(self) -> bool:
        """Send the request; return whether it is answered."""
        start = len(self._output)
        self._send(describe_acls())
        return self.read_until(_MARK + b".{6}", start)

    def end(self) -> Outcome:
        """Close the connection and return its outcome."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self.read_until(rb"(?!)")
        self._process.wait(TIMEOUT_S)
        text = self._output.decode(errors="replace")
        found = _SESSION.search(text)
        is_agreed = found is not None and found[2] != "(NONE)"
        at = self._output.find(_MARK)
        alert = _ALERT.search(text)
        return Outcome(
            version=found[2] if found is not None and is_agreed else "",
            cipher=found[3] if found is not None and is_agreed else "",
            is_resumed=found is not None and found[1] == "Reused",
            error_code=None if at < 0 else struct.unpack_from(">h", self._output, at + _ERROR_AT)[0],
            alert=None if alert is None else int(alert[1]),
            output=text,
        )


@contextmanager
def connected(port: int, authority: Path, *options: str | Path) -> Iterator[Connection]:
    """Run s_client against a port of 127.0.0.1, verifying the broker's certificate and its address."""
    verified = ("-CAfile", authority, "-verify_return_error", "-verify_ip", "127.0.0.1")
    process = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *verified, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "OPENSSL_CONF": os.devnull},
    )
    try:
        yield Connection(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def outcome_of(port: int, authority: Path, *options: str | Path) -> Outcome:
    """Connect, send the request, and return the outcome."""
    with connected(port, authority, *options) as connection:
        connection.request()
        return connection.end()
