"""The import of common APIs after the start."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.support.daemon import start_fresh_daemon

COMPARE = """
import sys, barnabas.broker.server
from barnabas.broker.warm_up import common_modules, import_modules
assert "barnabas.protocol.messages.topics.metadata" not in sys.modules
import_modules(common_modules())
before = set(sys.modules)
import barnabas.broker.handlers.topics.metadata, barnabas.protocol.messages.topics.metadata
import barnabas.broker.handlers.groups.join_group, barnabas.protocol.messages.groups.join_group
import barnabas.broker.handlers.groups.offset_commit, barnabas.protocol.messages.groups.offset_commit
import barnabas.protocol.messages.data.fetch, barnabas.broker.groups.classic.groups
print(*(set(sys.modules) - before))
"""


def test_the_import_covers_all_modules_of_the_common_apis() -> None:
    done = subprocess.run([sys.executable, "-c", COMPARE], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_a_module_that_cannot_be_imported_is_logged_and_the_others_follow() -> None:
    code = (
        "import sys; from barnabas.broker.warm_up import import_modules; "
        "import_modules(['barnabas.no_such_module', 'wave']); print('wave' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "True"
    assert "barnabas.no_such_module cannot be imported" in done.stderr


def test_a_daemon_imports_them_once_it_serves(tmp_path: Path) -> None:
    with start_fresh_daemon(tmp_path, environ={"BARNABAS_LOG_LEVEL": "debug"}) as daemon:
        deadline = time.monotonic() + 20
        while "modules of common APIs are imported" not in daemon.log and time.monotonic() < deadline:
            time.sleep(0.02)
        log = daemon.log
    assert log.index("ready, seconds") < log.index("modules of common APIs are imported")
