"""The command as a whole: its table of commands, its exit codes and how it fails."""

from __future__ import annotations

import errno
import importlib.abc
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientConfigError,
    ClosedError,
    DeliveryTimeoutError,
    RefusedError,
)
from barnabas.commands import entry
from barnabas.commands.exit_codes import EXIT_CODE_HELP, ExitCode
from barnabas.commands.failures import ClosedPipeError, CommandFailure
from barnabas.commands.main import COMMANDS, BarnabasGroup, main
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

ROOT = Path(__file__).resolve().parents[2]


def _group_that_raises(error: BaseException) -> BarnabasGroup:
    @click.command()
    def fail() -> None:
        raise error

    class OneCommand(BarnabasGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            return fail

    return OneCommand("barnabas")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_imported_and_has_help(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])

    assert result.exit_code == 0, result.output
    assert "--help" in result.output


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    output = CliRunner().invoke(main, ["--help"]).output

    assert all(re.search(rf"^  {name} ", output, re.MULTILINE) for name in COMMANDS)
    for code in ExitCode:
        assert re.search(rf"^ *{int(code)}  ", output, re.MULTILINE), f"{code} is not documented"


def test_every_documented_exit_code_exists() -> None:
    documented = {int(number) for number in re.findall(r"^ *(\d+)  ", EXIT_CODE_HELP, re.MULTILINE)}

    assert documented == set(map(int, ExitCode))


def test_version_prints_the_kernel() -> None:
    result = CliRunner().invoke(main, ["--version"])

    assert result.exit_code == 0
    assert re.fullmatch(r"barnabas \S+.*, (compiled|python) kernel, Python 3\.\d+\.\d+\n", result.output)


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (CommandFailure("no", ExitCode.TIMED_OUT), 4, "no"),
        (RefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, "t is there"), 1, "t is there (TOPIC_ALREADY_EXISTS)"),
        (RefusedError(ErrorCode.REQUEST_TIMED_OUT, "too slow"), 4, "too slow (REQUEST_TIMED_OUT)"),
        (BrokerConnectionError("nobody at\nh:1"), 3, "nobody at h:1"),
        (ConnectionRefusedError("refused"), 3, "refused"),
        (BrokerTimeoutError("silence"), 4, "silence"),
        (DeliveryTimeoutError(TopicPartition("t", 0), "late", None), 4, "late"),
        (DeliveryTimeoutError(TopicPartition("t", 0), "gone", BrokerConnectionError("refused")), 3, "gone"),
        (ClientConfigError("acks must be 0"), 2, "acks must be 0"),
        (ClosedError("closed"), 1, "closed"),
        (DecodeError("size"), 1, "the broker's answer cannot be read: size"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/x"), 1, "/x: No such file"),
        (
            ValueError("a bug"),
            70,
            "internal error: ValueError: a bug (BARNABAS_LOG_LEVEL=debug shows where)",
        ),
    ],
)
def test_a_failure_is_one_sentence_on_standard_error_and_an_exit_code(
    error: Exception, code: int, sentence: str
) -> None:
    result = CliRunner().invoke(_group_that_raises(error), ["fail"])

    assert result.exit_code == code
    assert result.stderr == f"barnabas: {sentence}\n"
    assert result.stdout == ""


def test_a_bug_shows_its_traceback_at_log_level_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_LOG_LEVEL", "debug")

    result = CliRunner().invoke(_group_that_raises(ValueError("a bug")), ["fail"])

    assert "Traceback" in result.stderr
    assert result.exit_code == 70


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (ClosedPipeError(), 141), (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141)],
)
def test_an_interrupt_and_a_closed_pipe_print_nothing(error: BaseException, code: int) -> None:
    result = CliRunner().invoke(_group_that_raises(error), ["fail"])

    assert result.exit_code == code
    assert result.stderr.strip() == ""


def test_an_interrupt_while_the_command_is_imported_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == "barnabas.commands.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "barnabas.commands.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])

    with pytest.raises(SystemExit) as ended:
        entry.main()

    assert ended.value.code == ExitCode.INTERRUPTED


@pytest.mark.parametrize("arguments", ["--help", "--version", "config list", "config list --json", "topic --help"])
def test_output_without_a_reader_prints_no_error(arguments: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "barnabas", *arguments.split()], cwd=ROOT, stdout=write_end, stderr=subprocess.PIPE
        )
    finally:
        os.close(write_end)

    assert (result.returncode, result.stderr) == (141, b"")


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main, ["topics"])

    assert result.exit_code == 2
    assert "No such command 'topics'" in result.stderr


def test_the_modules_of_serve_load_neither_tables_nor_the_client() -> None:
    script = (
        "import sys; import barnabas.commands.main, barnabas.commands.serve; "
        "print(*sorted({'rich', 'asyncio', 'msgpack', 'json', 'barnabas.clients.config'} & set(sys.modules)))"
    )

    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert result.stdout.strip() == ""


def test_python_dash_m_barnabas_is_the_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "barnabas", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert result.stdout.startswith("Usage: barnabas [OPTIONS] COMMAND")
