"""`import barnabas` finds this package, whatever modules are next to the importing script."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = tuple(sorted(link.name for link in (REPOSITORY / "barnabas").iterdir() if link.is_symlink()))

SCRIPT = """
import asyncio, json, sys
from barnabas import Admin, AdminConfig, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition

async def main(bootstrap):
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        await admin.create_topic("orders", partitions=1)
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        await producer.send_and_wait("orders", b"value", key=b"key")
    async with Consumer(ConsumerConfig(bootstrap=bootstrap)) as consumer:
        await consumer.assign([TopicPartition("orders", 0)])
        await consumer.seek_to_beginning()
        async for record in consumer:
            return [record.key.decode(), record.value.decode()]

print(json.dumps(asyncio.run(main(sys.argv[1]))))
"""


@pytest.fixture
def foreign_directory(tmp_path: Path) -> Path:
    """Create a directory of scripts with modules named like our folders."""
    directory = tmp_path / "somebody"
    directory.mkdir()
    for name in FOLDERS:
        (directory / f"{name}.py").write_text(f'raise AssertionError("the foreign {name}.py was imported")\n')
    return directory


def test_the_client_works_beside_foreign_modules_of_our_folders_names(tmp_path: Path, foreign_directory: Path) -> None:
    script = foreign_directory / "script.py"
    script.write_text(SCRIPT)

    with start_daemon(tmp_path / "daemon") as daemon:
        done = subprocess.run(
            [sys.executable, str(script), daemon.bootstrap],
            cwd=foreign_directory,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.stderr == ""
    assert json.loads(done.stdout) == ["key", "value"]


def test_the_command_starts_beside_foreign_modules_of_our_folders_names(foreign_directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "config", "list", "--json"],
        cwd=foreign_directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_lint_refuses_the_bare_names() -> None:
    statements = ("import {}", "from {} import anything", "import {}.anything")
    lines = {statement.format(folder): folder for folder in FOLDERS for statement in statements}

    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", "check", "--select", "TID251", "--output-format", "concise"),
            *("--stdin-filename", "clients/somewhere.py", "-"),
        ],
        input="\n".join(lines) + "\n",
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    for number, (line, folder) in enumerate(lines.items(), start=1):
        refusal = rf"^clients/somewhere\.py:{number}:.*write barnabas\.{folder}\b"
        assert re.search(refusal, done.stdout, re.MULTILINE), line


def test_the_image_is_built_from_every_folder_of_the_package() -> None:
    copied = {line.removeprefix("!") for line in (REPOSITORY / ".dockerignore").read_text().splitlines()}

    assert set(FOLDERS) <= copied
