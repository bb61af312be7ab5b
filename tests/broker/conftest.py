"""One daemon for all tests of a module, a connection to it, and batches to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.support.daemon import Daemon, start_daemon
from tests.support.wire import WireClient, new_host

Batch = Callable[..., bytearray]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Start one broker for the tests of a module; each test uses its own topics."""
    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[WireClient]:
    """Connect to the module's broker."""
    with WireClient(daemon.host, daemon.port, new_host()) as client:
        yield client


@pytest.fixture(scope="session")
def batch() -> Batch:
    """Build an uncompressed batch: batch(b"v1", b"v2", timestamp=..., key=...)."""

    def make(*values: bytes | None, timestamp: int = 1_700_000_000_000, key: bytes | None = b"k") -> bytearray:
        builder = RecordBatchBuilder(Codec.NONE, max_bytes=64 << 20)
        for value in values or (b"value",):
            assert builder.append(timestamp, key, value, ())
        return bytearray(builder.build())

    return make
