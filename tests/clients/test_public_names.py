from __future__ import annotations

import subprocess
import sys

import pytest

import barnabas


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_barnabas_loads_no_submodule() -> None:
    loaded = run(
        "import barnabas, sys; print([m for m in sys.modules if m.startswith(('barnabas.', 'msgpack', 'asyncio'))])"
    )
    assert loaded == "[]"


def test_importing_the_client_loads_neither_broker_nor_commands() -> None:
    code = (
        "import barnabas, sys; barnabas.Producer, barnabas.Consumer, barnabas.Admin;"
        "print([m for m in sys.modules if m.startswith('barnabas.broker') or 'commands' in m or m == 'click'])"
    )
    assert run(code) == "[]"


@pytest.mark.parametrize("name", barnabas.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(barnabas, name) is not None
    assert name in dir(barnabas)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Produser'"):
        barnabas.Produser  # noqa: B018
