"""The README's commands and Python program, run as written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, start_daemon

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("readme")) as daemon:
        yield daemon


def run(command: list[str], daemon: Daemon) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=daemon.directory,
        env={**os.environ, "PATH": path, "BARNABAS_BOOTSTRAP": daemon.bootstrap},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_of_the_first_five_minutes_do_what_they_say(daemon: Daemon) -> None:
    create_to_describe, as_json = (block for block in blocks("bash"))

    printed = run(["bash", "-euo", "pipefail", "-c", create_to_describe], daemon)
    records = [json.loads(line) for line in run(["bash", "-euc", as_json], daemon).splitlines()]

    assert all(word in printed for word in ("hello", "bonjour", "good evening"))
    by_key = {key: [record["value"] for record in records if record["key"] == key] for key in ("en", "fr")}
    assert by_key == {"en": ["hello", "good evening"], "fr": ["bonjour"]}


def test_a_kafka_client_and_our_own_print_what_they_wrote(daemon: Daemon, tmp_path: Path) -> None:
    printed = []
    for number, program in enumerate(blocks("python")):
        assert '"127.0.0.1:9092"' in program
        script = tmp_path / f"program_{number}.py"
        script.write_text(program.replace('"127.0.0.1:9092"', repr(daemon.bootstrap)))
        printed.append(run([sys.executable, str(script)], daemon))

    assert printed == ["payments 0 b'customer-7' b'12.50'\n", "b'customer-7' b'order 999'\n"]


PAGES = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *sorted(str(page.relative_to(REPOSITORY)) for page in (REPOSITORY / "docs").glob("**/*.md")),
]
GENERATED = ("docs/compatibility.md", "docs/configuration.md", "docs/metrics.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    source = REPOSITORY / page

    links = re.findall(r"\]\(([^)#]+)[^)]*\)", source.read_text())
    missing = [link for link in links if "://" not in link and not (source.parent / link).exists()]

    assert missing == []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in GENERATED])
def test_pages_wrap_at_120_columns_outside_of_tables_and_code(page: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", (REPOSITORY / page).read_text(), flags=re.DOTALL | re.MULTILINE)

    long = [line for line in prose.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]

    assert long == []


def test_every_make_target_that_the_pages_name_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))

    named = {
        name
        for page in ("README.md", "CONTRIBUTING.md")
        for name in re.findall(r"^ *make ([a-z-]+)", (REPOSITORY / page).read_text(), re.MULTILINE)
    }

    assert {"serve", "test", "check", "interop"} <= named
    assert named <= targets
