"""`barnabas consume --share-group` as processes against a real broker."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.records.consume import consume
from tests.support.daemon import Daemon, start_daemon
from tests.support.forked_commands import run_forked, running_forked
from tests.support.share.group_settings import set_group_configs

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = ("share.coordinator.state.topic.num.partitions=1", "auto.create.topics.enable=false")
    with start_daemon(tmp_path_factory.mktemp("daemon"), *settings) as running:
        yield running


def environ(daemon: Daemon) -> dict[str, str]:
    return {**os.environ, "BARNABAS_BOOTSTRAP": daemon.bootstrap}


def filled(daemon: Daemon, topic: str, *values: str) -> tuple[str, ...]:
    """Create a topic with records, and let the group of the same name begin with the first; return the command."""
    daemon.create_topic(topic)
    set_group_configs(daemon, topic, {"share.auto.offset.reset": "earliest"})
    lines = "".join(f"{value}\n" for value in values).encode()
    assert run_forked("produce", topic, environ=environ(daemon), stdin=lines).returncode == 0
    return ("consume", topic, "--share-group", topic)


def run(daemon: Daemon, *arguments: str) -> str:
    done = run_forked(*arguments, environ=environ(daemon))
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def left(daemon: Daemon, group: str) -> int:
    """The number of records that are not done."""
    (partition,) = json.loads(run(daemon, "group", "describe", group, "--json"))["partitions"]
    return int(partition["lag"])


def test_written_records_are_done_and_the_others_are_not(daemon: Daemon) -> None:
    command = filled(daemon, "printed", "a", "b", "c")
    assert run(daemon, *command, "--max-messages", "2") == "a\nb\n"
    assert left(daemon, "printed") == 1
    assert run(daemon, *command, "--max-messages", "1", "--print-offset") == "Offset:2\tc\n"
    done = run_forked(*command, "--timeout-ms", "100", environ=environ(daemon))
    assert (done.returncode, done.stdout) == (ExitCode.TIMED_OUT, b"")
    assert b"no record came for 0.1 s; 0 were read" in done.stderr


def test_released_records_come_again_and_rejected_ones_do_not(daemon: Daemon) -> None:
    command = filled(daemon, "returned", "a", "b")
    assert run(daemon, *command, "--max-messages", "2", "--acknowledge", "release") == "a\nb\n"
    assert run(daemon, *command, "--max-messages", "1", "--acknowledge", "reject", "--json").startswith(
        '{"topic": "returned", "partition": 0, "offset": 0,'
    )
    assert run(daemon, *command, "--max-messages", "1") == "b\n"
    assert left(daemon, "returned") == 0


def test_ctrl_c_leaves_written_records_done(daemon: Daemon) -> None:
    command = filled(daemon, "interrupted", "a", "b")
    with running_forked(*command, environ=environ(daemon)) as process:
        assert [process.stdout.readline(), process.stdout.readline()] == [b"a\n", b"b\n"]
        produced = run_forked("produce", "interrupted", environ=environ(daemon), stdin=b"c\n")
        assert produced.returncode == 0
        assert process.stdout.readline() == b"c\n"  # so a and b are acknowledged
        process.send_signal(signal.SIGINT)
        assert process.wait() == ExitCode.INTERRUPTED
    assert left(daemon, "interrupted") <= 1


def test_an_unknown_topic_is_named(daemon: Daemon) -> None:
    done = run_forked("consume", "nowhere", "--share-group", "g", environ=environ(daemon))
    assert (done.returncode, done.stdout) == (ExitCode.FAILED, b"")
    assert b"there is no topic 'nowhere'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("t", "--share-group", "s", "--group", "g"), "--group cannot be used with --share-group"),
        (("t", "--share-group", "s", "--partition", "0"), "--partition cannot be used with --share-group"),
        (("t", "--share-group", "s", "--exit-at-end"), "--exit-at-end cannot be used with --share-group"),
        (("t", "--share-group", "s", "--from-beginning"), "the group's config share.auto.offset.reset"),
        (("t", "--share-group", "s", "--isolation-level", "read_committed"), "config share.isolation.level"),
        (("t", "--share-group", ""), "--share-group needs a name"),
        (("t", "--acknowledge", "reject"), "--acknowledge needs --share-group"),
        (("t", "--share-group", "s", "--acknowledge", "renew"), "'renew' is not one of"),
        (("--share-group", "s"), "Give either a TOPIC or --include"),
    ],
)
def test_conflicting_options_are_refused_in_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    done = CliRunner().invoke(consume, arguments)
    assert done.exit_code == ExitCode.USAGE
    assert sentence in " ".join(done.output.split())
