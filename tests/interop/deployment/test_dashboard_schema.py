"""The dashboard against Grafana's own schema, in the form of its Foundation SDK for Python.

The SDK's classes are generated from the schemas of Grafana's dashboard and panels. A round trip through them drops
everything that the schema does not define: a misspelled option, or one of another version.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard import dashboard
from tests.support.interop import require_or_skip

pytestmark = pytest.mark.timeout(300)

SDK = "grafana-foundation-sdk==1769699379!11.6.0"
"""The number after the epoch is Grafana's version."""

INSTALL_TIMEOUT_S = 200

_READ_AND_WRITE = """\
import json, sys
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
plugins.register_default_plugins()
print(json.dumps(Dashboard.from_json(json.load(sys.stdin)), cls=JSONEncoder))
"""


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the SDK into a folder, from the package index configured for pip."""
    folder = tmp_path_factory.mktemp("sdk")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--target", str(folder), SDK], capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
    )
    if done.returncode != 0:
        require_or_skip(f"{SDK} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def through_grafanas_classes(sdk: Path, given: dict[str, Any]) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", _READ_AND_WRITE],
        input=json.dumps(given),
        env={**os.environ, "PYTHONPATH": str(sdk)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(ours: Any, theirs: Any, place: str = "dashboard") -> Iterator[str]:
    """Yield the places where `theirs` lacks something in `ours`. Additions in `theirs` are ignored."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            yield from lost(value, theirs[name], f"{place}.{name}") if name in theirs else [f"{place}.{name}"]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from lost(one, other, f"{place}[{index}]")
    elif ours != theirs:
        yield f"{place}: {ours!r} became {theirs!r}"


def test_grafanas_schema_knows_everything_in_the_dashboard(sdk: Path) -> None:
    ours = dashboard()
    assert not list(lost(ours, through_grafanas_classes(sdk, ours)))


def test_what_grafanas_schema_does_not_know_is_found(sdk: Path) -> None:
    wrong = dashboard()
    wrong["panels"][1]["options"]["colourMode"] = "value"
    assert list(lost(wrong, through_grafanas_classes(sdk, wrong))) == ["dashboard.panels[1].options.colourMode"]
