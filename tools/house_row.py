"""Measures the size and the shape of the code, as one row of the table in docs/house.md.

    python -m tools.house_row              print today's row and the lines of each area
    python -m tools.house_row --add        add the row to docs/house.md

Coverage is that of the last `make coverage`, if its data is in build/coverage; `-` otherwise.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/house.md"
COVERAGE = ROOT / "build/coverage/data"
PRODUCT = (
    *("barnabas", "broker", "clients", "commands", "config", "console", "explanation", "pipeline", "protocol"),
    *("pyspark_barnabas", "transport"),
)
CODE = (".py", ".pyx", ".pxd", ".pyi", ".h", ".html", ".js", ".css")


ROUNDS = 6


class Source(NamedTuple):
    """A tracked file of code."""

    path: Path
    lines: int


def sources() -> list[Source]:
    """Return the tracked files of code, without vendored ones; the links in barnabas/ are no files of their own."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (Path(line) for line in tracked.splitlines())
    wanted = (path for path in paths if path.suffix in CODE and "vendor" not in path.parts)
    return [Source(path, (ROOT / path).read_bytes().count(b"\n")) for path in wanted if not (ROOT / path).is_symlink()]


def area(path: Path) -> str:
    """Return what docs/architecture.md has a row for: a folder of `broker` or `protocol`, else one at the root."""
    depth = 2 if path.parts[0] in ("broker", "protocol") and len(path.parts) > 2 else 1
    return "/".join(path.parts[:depth])


def late_imports(path: Path) -> int:
    """Count the imports inside functions."""
    tree = ast.parse((ROOT / path).read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    found = {
        (node.lineno, node.col_offset)
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(found)


def circles(depth: int = 99) -> list[list[str]]:
    """Return the names in each circle of imports, late imports included; names are cut to `depth` parts."""
    graph = grimp.build_graph("barnabas", exclude_type_checking_imports=True, cache_dir=None)
    edges: defaultdict[str, set[str]] = defaultdict(set)
    for importer in graph.modules - {"barnabas"}:
        for imported in graph.find_modules_directly_imported_by(importer) - {"barnabas"}:
            start, end = (".".join(name.split(".")[:depth]) for name in (importer, imported))
            if start != end:
                edges[start].add(end)
    return [sorted(group) for group in _components(edges) if len(group) > 1]


def _components(edges: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components (Kosaraju's two passes)."""
    reverse: defaultdict[str, set[str]] = defaultdict(set)
    for start, ends in edges.items():
        for end in ends:
            reverse[end].add(start)
    seen: set[str] = set()
    order = [node for start in sorted(edges) for node in _postorder(start, edges, seen)]
    seen = set()
    for start in reversed(order):
        yield _postorder(start, reverse, seen)


def _postorder(start: str, edges: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """Return the nodes that `start` reaches and `seen` lacks, each after those that it reaches."""
    found: list[str] = []
    stack = [] if start in seen else [(start, iter(sorted(edges.get(start, ()))))]
    seen.add(start)
    while stack:
        node, ends = stack[-1]
        for end in ends:
            if end not in seen:
                seen.add(end)
                stack.append((end, iter(sorted(edges.get(end, ())))))
                break
        else:
            found.append(node)
            stack.pop()
    return found


def files_per_request() -> dict[str, int]:
    """Return how many files of ours run Python code between a request and its answer, by API.

    The broker runs in this process without compiled kernels. Each request is sent ROUNDS times: the first one imports,
    and a file that does not run at each of the others does other work meanwhile.
    """
    os.environ["BARNABAS_KERNEL"] = "python"
    from barnabas.broker.node import Node
    from barnabas.broker.storage.services.clock import SystemClock
    from barnabas.config import BrokerConfig
    from barnabas.config.value import Setting
    from tests.support.kafka.kafka_wire import KafkaWire
    from tools.house_requests import REQUESTS

    seen: set[str] = set()
    counted: dict[str, int] = {}
    folders = tuple(f"{ROOT / folder}/" for folder in PRODUCT)

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    def client(port: int) -> None:
        with KafkaWire("127.0.0.1", port) as wire:
            for name, request in REQUESTS.items():
                runs = []
                for _ in range(ROUNDS):
                    entity = request(wire)
                    seen.clear()
                    wire.send(entity)
                    wire.receive_frame()
                    runs.append(set(seen))
                files = set.intersection(*runs[1:])
                counted[name] = sum(1 for file in files if os.path.realpath(file).startswith(folders))

    async def serve(directory: str) -> None:
        texts = {"log.dirs": directory, "listeners": "127.0.0.1:0", "metrics.listener": ""}
        config = BrokerConfig.of({name: Setting(text, "house_row") for name, text in texts.items()})
        node = Node(config, asyncio.get_running_loop(), SystemClock())
        await node.start()
        sys.setprofile(note)
        try:
            await asyncio.to_thread(client, node.port)
        finally:
            sys.setprofile(None)
            await node.stop()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(serve(directory))
    return counted


def coverage_by_area() -> dict[str, str]:
    """Return the covered percentage of each area, branches included, and of all as ""; empty without data."""
    if not COVERAGE.exists():
        return {}
    report = subprocess.run(
        [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(report.stdout)
    covered: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for file, entry in found["files"].items():
        summary = entry["summary"]
        for key in (area(Path(file)), ""):
            covered[key] += summary["covered_lines"] + summary.get("covered_branches", 0)
            wanted[key] += summary["num_statements"] + summary.get("num_branches", 0)
    return {key: f"{100 * covered[key] / count:.1f}" for key, count in wanted.items() if count}


def main() -> None:
    """Print the row and the areas; with --add write the row into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", action="store_true", help="add the row to docs/house.md")
    add = parser.parse_args().add
    files = sources()
    product = [file for file in files if file.path.parts[0] in PRODUCT]
    modules = [file for file in product if file.path.suffix == ".py"]
    coverage = coverage_by_area()
    requests = files_per_request()
    revision = subprocess.run(
        ["git", "log", "-1", "--format=%cs | %h"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    row = [
        revision.stdout.strip(),
        f"{sum(file.lines for file in product):,}",
        f"{sum(file.lines for file in product if file.path.suffix in ('.pyx', '.pxd', '.h')):,}",
        f"{sum(file.lines for file in files if file.path.parts[0] == 'tests'):,}",
        f"{len(modules):,}",
        f"{statistics.median(file.lines for file in modules):.0f}",
        f"{len({file.path.parent for file in modules})}",
        f"{sum(late_imports(file.path) for file in modules):,}",
        f"{sum(map(len, circles()))}",
        f"{sum(map(len, circles(2)))}",
        " ".join(str(count) for count in requests.values()),
        coverage.get("", "-"),
    ]
    line = "| " + " | ".join(row) + " |"
    if add:
        PAGE.write_text(PAGE.read_text().rstrip("\n") + f"\n{line}\n")
    print(line)
    print("files per request: " + ", ".join(f"{name} {count}" for name, count in requests.items()))
    lines: Counter[str] = Counter()
    for file in product:
        lines[area(file.path)] += file.lines
    for name, count in lines.most_common():
        print(f"{count:8,}  {name}  {coverage.get(name, '')}")


if __name__ == "__main__":
    main()
