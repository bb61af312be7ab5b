"""The arguments of `barnabas serve`: click and the parser that does without it agree."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import patch

import click
import pytest
from click.testing import CliRunner

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.main import main
from barnabas.commands.serve import serve
from barnabas.commands.serve_arguments import ServeArguments, parse_plain


def _parsed_by_click(arguments: list[str], environ: dict[str, str]) -> ServeArguments:
    with patch("barnabas.commands.serve.serve_broker", return_value=0) as serve_broker:
        result = CliRunner(env=environ).invoke(main, ["serve", *arguments])
    assert result.exit_code == 0, result.output
    parsed: ServeArguments = serve_broker.call_args.args[0]
    return parsed


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        ([], {}),
        (["--config", "a/b", "--set", "x=1", "--set=y=2=3", "--log-level", "DEBUG"], {}),
        (["--ready-file=r", "--stop-with-stdin", "--ignore-security", "--config=c"], {}),
        (["--adopt-topics"], {}),
        (["--ready-file", "-"], {}),
        (["--ready-file=-", "--stop-with-stdin"], {}),
        (["--log-level", "info", "--log-level=error", "--stop-with-stdin"], {}),
        ([], {"BARNABAS_CONFIG": "from-environ", "BARNABAS_LOG_LEVEL": "Warning"}),
        (["--config", "c", "--log-level", "error"], {"BARNABAS_CONFIG": "e", "BARNABAS_LOG_LEVEL": "debug"}),
        ([], {"BARNABAS_CONFIG": "", "BARNABAS_LOG_LEVEL": ""}),
    ],
)
def test_plain_arguments_are_parsed_as_click_parses_them(arguments: list[str], environ: dict[str, str]) -> None:
    no_environ = {"BARNABAS_CONFIG": "", "BARNABAS_LOG_LEVEL": ""}

    assert parse_plain(arguments, environ) == _parsed_by_click(arguments, no_environ | environ)


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (["--help"], {}),
        (["-h"], {}),
        (["--config"], {}),
        (["--config", "--set"], {}),
        (["--conf", "x"], {}),
        (["--stop-with-stdin=yes"], {}),
        (["--", "--config", "x"], {}),
        (["extra"], {}),
        (["--log-level", "loud"], {}),
        (["--ready-file", "/"], {}),
        (["--ready-file", "--config"], {}),
        (["--config", "-"], {}),
        ([], {"BARNABAS_LOG_LEVEL": "loud"}),
        ([], {"_BARNABAS_COMPLETE": "bash_source"}),
    ],
)
def test_all_other_arguments_are_left_to_click(arguments: list[str], environ: dict[str, str]) -> None:
    assert parse_plain(arguments, environ) is None


def test_every_option_of_click_is_a_plain_argument() -> None:
    for option in serve.params:
        assert isinstance(option, click.Option)
        value = [] if option.is_flag else ["info"]
        assert parse_plain([option.opts[0], *value], {}) is not None, option.opts


@pytest.mark.parametrize(("arguments", "code"), [(["--set", "no.such.property=1"], 2), (["--set", "log.dirs="], 2)])
def test_a_refused_start_is_one_sentence_with_and_without_click(arguments: list[str], code: int) -> None:
    plain = subprocess.run(
        [sys.executable, "-m", "barnabas", "serve", *arguments], capture_output=True, text=True, timeout=60
    )
    with_click = CliRunner().invoke(main, ["serve", *arguments])

    assert plain.returncode == with_click.exit_code == code == ExitCode.USAGE
    assert plain.stderr == with_click.stderr
    assert plain.stderr.startswith("barnabas: ")


def test_serve_with_plain_arguments_does_not_import_click() -> None:
    script = (
        "import sys; from barnabas.commands import entry; sys.argv = ['barnabas', 'serve', '--set', 'bad=1']\n"
        "try: entry.main()\n"
        "finally: print('click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout.strip()) == (2, "False")
