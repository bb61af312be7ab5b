"""config/systemd/barnabas.service as systemd reads it.

tests/broker/test_service_manager.py has what the broker sends to systemd.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from barnabas.commands.exit_codes import ExitCode
from tests.support.daemon import REPOSITORY

UNIT = REPOSITORY / "config" / "systemd" / "barnabas.service"
USERS = REPOSITORY / "config" / "systemd" / "barnabas.sysusers"
EXPOSURE_MAX = 15
"""In tenths, of 100. It is 14; what is left is the network, the host's root directory and users."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"not on the PATH: {command[0]}, which comes with systemd")
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """Return the path of the unit, with a command that exists on this machine."""
    unit = tmp_path / UNIT.name
    text = UNIT.read_text()
    assert "ExecStart=/opt/barnabas/bin/barnabas serve " in text
    unit.write_text(text.replace("/opt/barnabas/bin/barnabas", "/bin/true"))
    return str(unit)


def test_systemd_has_nothing_to_say_about_the_unit(installed: str) -> None:
    done = run("systemd-analyze", "--man=no", "verify", installed)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_unit_is_as_closed_as_a_server_can_be(installed: str) -> None:
    done = run("systemd-analyze", "security", "--no-pager", "--offline=yes", f"--threshold={EXPOSURE_MAX}", installed)

    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_creates_the_user_of_the_unit(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    done = run("systemd-sysusers", f"--root={tmp_path}", str(USERS))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "etc" / "passwd").read_text().split(":")[0] == "barnabas"
    assert "\nUser=barnabas\nGroup=barnabas\n" in UNIT.read_text()


def test_a_refused_configuration_is_not_tried_again() -> None:
    assert f"\nRestartPreventExitStatus={int(ExitCode.USAGE)}\n" in UNIT.read_text()
