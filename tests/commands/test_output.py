"""Tables, JSON and progress bars: on a terminal and for a program."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from barnabas.commands.output import is_pipe, print_json, print_table
from barnabas.explanation.wording import counted

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0

DRAW_BAR = """
from barnabas.commands.progress import progress_bar
with progress_bar("working", total=10, unit="records") as bar:
    for _ in range(10):
        bar.advance(1)
import sys
print("rich" in sys.modules)
"""


def _in_terminal(*arguments: str, typed: bytes = b"") -> tuple[int, str]:
    """Exit code and output of a Python process whose three streams are a terminal of 200 columns."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environ, stdin=inside, stdout=inside, stderr=inside
    )
    os.close(inside)
    if typed:
        os.write(terminal, typed)
    output = bytearray()
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux: nobody holds the other end any more
            break
        if not chunk:
            break
        output += chunk
    os.close(terminal)
    return process.wait(TIMEOUT_S), output.decode()


def test_a_table_for_programs_is_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count", "text"), [("a", 5, "x" * 300), ("long name", 12345, None)])

    assert capsys.readouterr().out == (
        "name       count  text\n" + f"a              5  {'x' * 300}\n" + "long name  12345  -\n"
    )


def test_a_table_without_rows_is_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count"), [])

    assert capsys.readouterr().out == "name  count\n"


def test_json_is_always_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"topic": "ü\u2028"})

    output = capsys.readouterr().out
    assert output.isascii()
    assert json.loads(output) == {"topic": "ü\u2028"}


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "record", "1 record"),
        (0, "record", "0 records"),
        (1234, "record", "1,234 records"),
        (2, "property", "2 properties"),
    ],
)
def test_counts_have_singular_and_plural_nouns(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text


def test_only_a_pipe_can_lose_its_reader(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    try:
        assert is_pipe(write_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    with (tmp_path / "file").open("wb") as file:
        assert not is_pipe(file.fileno())


def test_a_table_on_a_terminal_is_drawn_and_nowhere_else() -> None:
    arguments = ("-m", "barnabas", "config", "list", "log.index.size.max.bytes")

    code, drawn = _in_terminal(*arguments)
    plain = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert code == 0
    assert "\x1b[" in drawn
    assert "───" in drawn
    assert "10485760" in drawn
    assert "\x1b" not in plain
    assert plain.isascii()
    assert plain.splitlines()[1].startswith("log.index.size.max.bytes  int   10485760  ")


def test_a_progress_bar_is_drawn_on_a_terminal() -> None:
    code, output = _in_terminal("-c", DRAW_BAR)

    assert code == 0
    assert "working" in output
    assert "10/10" in output


def test_without_a_terminal_there_is_no_bar_and_nothing_is_loaded_for_one() -> None:
    result = subprocess.run([sys.executable, "-c", DRAW_BAR], cwd=ROOT, capture_output=True, text=True, check=True)

    assert (result.stdout, result.stderr) == ("False\n", "")


def test_deleting_a_topic_asks_on_a_terminal_before_it_connects() -> None:
    code, output = _in_terminal(
        "-m", "barnabas", "topic", "delete", "precious", "--bootstrap", "127.0.0.1:1", typed=b"n\n"
    )

    assert code == 1
    assert "Delete precious and all records?" in output
    assert "barnabas: nothing was deleted" in output
