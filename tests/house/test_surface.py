"""What programs read: the shape of each command's `--json`, and the exit codes, as recorded in surface/json.txt.

`SURFACE=write pytest tests/house/test_surface.py` records them anew; the commit shows the difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.daemon import start_daemon
from tests.support.forked_commands import run_forked
from tools.surface import commands

RECORDED = Path(__file__).parent / "surface/json.txt"

OF_A_BROKER = """
topic create orders --partitions 1 --json
topic create orders --json
topic create compacted --config cleanup.policy=compact
topic create refused --config retention.ms=soon
topic list --json
topic describe orders --json
topic describe nowhere --json
produce orders --json < {"key": "k", "value": "v", "headers": [["h", "x"]], "partition": 0}
produce orders --json < {"value":
produce compacted --key-separator : < k:v
consume orders --from-beginning --exit-at-end --json
consume orders --group readers --from-beginning --exit-at-end --json
consume nowhere --exit-at-end
offsets orders --json
topic delete-records orders 0 1 --json
topic delete-records orders 0 100 --json
topic alter orders --partitions 3
topic alter orders --partitions 1
group list --json
group describe readers --json
group describe nowhere --json
group reset-offsets readers --to-earliest --topic orders --json
group reset-offsets readers --to-earliest --topic orders --execute --json
group delete readers
group delete readers
transaction list --json
transaction describe nowhere --json
transaction find-hanging orders --json
partition dirs --json
config list retention --json
config describe --topic orders --json
config describe --broker 1 log.retention.ms --json
config alter --topic orders --config retention.ms=1000
config alter --topic orders --config retention.ms=soon
quota set --user alice producer_byte_rate=1000
quota list --json
quota delete --user alice producer_byte_rate
user add alice < secret
user list --json
user delete alice
acl list --json
mirror create copy --source 127.0.0.1:1 --topics orders.* --json
mirror describe copy --json
mirror list --json
mirror alter copy --max-bytes-per-second 1000 --json
mirror pause copy
mirror delete copy
standby status --data DIR --json
doctor client HOST --json
explain config retention.ms --topic orders --json
explain durability --json
explain group nowhere --json
explain partition orders-0 --json
explain space --json
explain start --json
explain topic orders --json
explain transaction --json
topic delete orders
topic delete orders
topic delete orders --if-exists
topic remove orders
topic create
consume compacted --exit-at-end --bootstrap 127.0.0.1:1 --timeout 1
"""

OF_A_DIRECTORY = """
log verify DIR --json
log verify DIR/nowhere --json
log dump DIR/compacted-0/00000000000000000000.log --records --data --json
log dump DIR/meta.properties --json
log dump DIR/nowhere --json
log compact DIR --json
log abort-transaction DIR --json
log reindex DIR
doctor dir DIR --json
explain topic compacted --log-dir DIR --json
explain topic nowhere --log-dir DIR --json
"""

WITHOUT_A_LINE = {
    "acl explain": "needs a broker with an authorizer: tests/commands/security",
    "explain mirror": "needs two brokers: tests/commands/test_mirror.py",
    "mirror failback": "needs two brokers: tests/broker/mirrors",
    "mirror promote": "needs two brokers: tests/broker/mirrors",
    "standby promote": "needs two brokers: tests/broker/standby",
    **dict.fromkeys(("archive", "audit", "replay", "snapshot", "stats", "whatif"), "needs Spark: tests/pipeline"),
}


def shape(value: Any) -> Any:
    """Return the types of a document's values by key; those of an array are the shapes that its elements have."""
    match value:
        case dict():  # an error may be null still, or again
            return {key: "error" if key == "error" else shape(entry) for key, entry in value.items()}
        case list():
            return [json.loads(found) for found in sorted({json.dumps(shape(entry)) for entry in value})]
        case _:
            return type(value).__name__


def answers(lines: str, directory: Path, environ: dict[str, str], host: str) -> Iterator[str]:
    """Yield each command with its exit code and the shapes of its documents."""
    for line in lines.strip().splitlines():
        arguments, _, given = line.partition(" < ")
        words = [word.replace("DIR", str(directory)).replace("HOST", host) for word in arguments.split()]
        ended = run_forked(*words, environ=environ, stdin=f"{given}\n".encode())
        yield f"{line}\n    exit code {ended.returncode}"
        if "--json" in words:
            text = ended.stdout.decode()
            try:
                documents = [json.loads(text)] if text else []
            except json.JSONDecodeError:
                documents = [json.loads(row) for row in text.splitlines()]
            yield from (f"    {json.dumps(found)}" for found in shape(documents))


def test_json_and_exit_codes_are_as_recorded(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "auto.create.topics.enable=false", "offsets.topic.num.partitions=1") as daemon:
        host = f"{daemon.host}:{daemon.port}"
        environ = {**os.environ, "BARNABAS_BOOTSTRAP": host}
        found = [*answers(OF_A_BROKER, tmp_path / "data", environ, host)]
        directory = tmp_path / "data"
    found += answers(OF_A_DIRECTORY, directory, environ, host)
    text = "\n".join(found) + "\n"
    if os.environ.get("SURFACE") == "write":
        RECORDED.write_text(text)
    assert text.splitlines() == RECORDED.read_text().splitlines()


def test_each_command_with_json_is_recorded() -> None:
    path = ""
    with_json = set()
    for line in commands():
        if not line.startswith(" "):
            path = line.removeprefix("barnabas ")
        elif line.strip().startswith("--json"):
            with_json.add(path)
    recorded = {line for line in RECORDED.read_text().splitlines() if not line.startswith(" ")}
    missing = {name for name in with_json if not any(f"{line} ".startswith(f"{name} ") for line in recorded)}
    assert {name.removeprefix("pipeline ") for name in missing} == set(WITHOUT_A_LINE)
