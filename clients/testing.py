"""A real broker for tests of any client program: a process of its own, ready in well under a second.

    from barnabas.clients.testing import broker

    with broker() as running:
        running.create_topic("orders", partitions=3)
        connect(running.bootstrap)                    # with any Kafka client, or Barnabas's own

It listens on free ports of 127.0.0.1, keeps its data in a temporary directory, and never outlives the process that
started it. `secure_broker()` runs one with TLS and users. Under pytest, use the plugin's fixtures: see `pytest_plugin`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.clients.broker_process import BrokerProcess, BrokerProcessError

if TYPE_CHECKING:
    from barnabas.clients.secure_testing import SecureBrokerProcess

__all__ = ["BrokerProcess", "BrokerProcessError", "broker", "secure_broker"]


@contextmanager
def broker(settings: Mapping[str, object] | None = None, *, directory: Path | None = None) -> Iterator[BrokerProcess]:
    """Run a broker until the block ends, with its data in `directory` or in a temporary one that is then removed."""
    with tempfile.TemporaryDirectory(prefix="barnabas-") as temporary:
        with BrokerProcess(directory or Path(temporary), settings) as running:
            yield running


@contextmanager
def secure_broker(
    settings: Mapping[str, object] | None = None, *, directory: Path | None = None
) -> Iterator[SecureBrokerProcess]:
    """Run a broker with TLS and users until the block ends: see `SecureBrokerProcess`."""
    from barnabas.clients.secure_testing import SecureBrokerProcess  # TLS, logins and the client

    with tempfile.TemporaryDirectory(prefix="barnabas-") as temporary:
        with SecureBrokerProcess(directory or Path(temporary), settings) as running:
            yield running
