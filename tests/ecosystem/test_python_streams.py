"""Stream processors in Python, each in a virtual environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.ecosystem.environments import virtual_environment
from tests.support.ecosystem.flow import process_through_kills
from tests.support.program import Program

HERE = Path(__file__).parent
Start = Callable[[str, str, str], Program]


@pytest.fixture
def application(tmp_path: Path) -> Callable[[str], Start]:
    """Return a function that installs what the project in a folder needs, and returns how to start its program."""

    def install(folder: str) -> Start:
        project = HERE / folder
        python = virtual_environment(folder, project / "requirements.txt") / "bin" / "python"

        def program(*arguments: str) -> Program:
            return Program(tmp_path / folder, [str(python), str(project / "capitals.py"), *arguments])

        return program

    return install


@pytest.mark.ecosystem("Quix Streams", "3.28.1", "application that reads a topic and writes another one, killed too")
def test_quix_streams_loses_nothing_when_it_and_the_broker_are_killed(
    daemon: Daemon, application: Callable[[str], Start]
) -> None:
    process_through_kills(daemon, application("quixstreams"))


@pytest.mark.ecosystem("faust-streaming", "0.15.3", "agent that reads a topic and writes another one, killed too")
def test_faust_loses_nothing_when_it_and_the_broker_are_killed(
    daemon: Daemon, application: Callable[[str], Start]
) -> None:
    process_through_kills(daemon, application("faust"))
