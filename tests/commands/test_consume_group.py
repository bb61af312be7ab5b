"""`barnabas consume --group` as processes against a real broker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from barnabas.commands.records.consume import consume
from tests.support.daemon import Daemon, start_daemon
from tests.support.forked_commands import run_forked, running_forked


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon")) as running:
        for topic in ("resumed", "interrupted", "included-a", "included-b", "excluded-included-a"):
            running.create_topic(topic, partitions=2)
        yield running


def environ(daemon: Daemon) -> dict[str, str]:
    return {**os.environ, "BARNABAS_BOOTSTRAP": daemon.bootstrap}


def run(daemon: Daemon, *arguments: str, stdin: str = "") -> str:
    done = run_forked(*arguments, environ=environ(daemon), stdin=stdin.encode())
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def produce(daemon: Daemon, topic: str, *values: str, partition: int) -> None:
    run(daemon, "produce", topic, "--partition", str(partition), stdin="".join(f"{value}\n" for value in values))


def test_each_run_continues_after_the_last_ones_output(daemon: Daemon) -> None:
    produce(daemon, "resumed", "a", "b", "c", partition=0)
    consuming_all = ("consume", "resumed", "--group", "g", "--from-beginning")
    assert run(daemon, *consuming_all, "--max-messages", "1") == "a\n"
    assert run(daemon, *consuming_all, "--exit-at-end") == "b\nc\n"
    assert run(daemon, *consuming_all, "--exit-at-end") == ""
    produce(daemon, "resumed", "d", partition=1)
    assert run(daemon, *consuming_all, "--exit-at-end") == "d\n"


def test_ctrl_c_commits_written_records(daemon: Daemon) -> None:
    produce(daemon, "interrupted", "a", "b", partition=0)
    reading = ("consume", "interrupted", "--group", "g", "--from-beginning")
    with running_forked(*reading, environ=environ(daemon)) as process:
        assert [process.stdout.readline(), process.stdout.readline()] == [b"a\n", b"b\n"]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert run(daemon, *reading, "--exit-at-end") == ""


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "roundrobin"])
def test_all_topics_that_match_an_expression_are_read(daemon: Daemon, assignor: str) -> None:
    for topic in ("included-a", "included-b", "excluded-included-a"):
        produce(daemon, topic, f"{assignor} {topic}", partition=1)
    included = ("consume", "--include", "included-.", "--group", f"g-{assignor}", "--assignor", assignor)
    found = run(daemon, *included, "--from-beginning", "--exit-at-end").splitlines()
    assert {line for line in found if line.startswith(assignor)} == {
        f"{assignor} included-a",
        f"{assignor} included-b",
    }
    assert not [line for line in found if "excluded" in line]
    assert run(daemon, *included, "--from-beginning", "--exit-at-end") == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("t", "--include", "t.*", "--group", "g"), "Give either a TOPIC or --include."),
        (("--group", "g"), "Give either a TOPIC or --include."),
        (("--include", "t.*"), "--include and --assignor need --group"),
        (("t", "--assignor", "range"), "--include and --assignor need --group"),
        (("--include", "(", "--group", "g"), "'(' is not a regular expression"),
        (("t", "--group", "g", "--assignor", "stickier"), "'stickier' is not one of"),
    ],
)
def test_conflicting_options_are_refused_in_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    done = CliRunner().invoke(consume, arguments)
    assert done.exit_code == 2
    assert sentence in done.output
