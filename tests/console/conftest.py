"""One broker and one console for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import ConsoleClient, running_console
from tests.support.daemon import Daemon, start_daemon


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker without security."""
    daemon = start_daemon(tmp_path_factory.mktemp("broker"))
    try:
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture(scope="module")
def console(broker: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    """A console of the broker."""
    with running_console(broker.bootstrap, log=_log(tmp_path_factory)) as client:
        yield client


@pytest.fixture(scope="module")
def changing_console(broker: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    """A console of the broker that may change things, and has a name."""
    options = ("--allow-changes", "--host-name", "Console.Example")
    with running_console(broker.bootstrap, *options, log=_log(tmp_path_factory)) as client:
        yield client


def _log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("console") / "stderr"
