"""Runs pytest, and each test that failed once more, alone: other people's software is not always on time.

    python -m tools.second_try KEPT [pytest's arguments ...]

The failed tests of a file are tried together. If they pass, they are called flaky: the run counts as passed, names them
at its end, and keeps the output of their failure in the folder KEPT. A test that fails twice, failures in more than
FILES_MAX files, a file that cannot be imported and an interrupted run count as failed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

FILES_MAX = 4
"""With failed tests in more files than this, the run has failed, and no second try is made: that is no accident.

Files are counted, because all tests of a file fail with the daemon that they share."""


class Failures:
    """A pytest plugin that keeps the output of each test that failed, by its node id, whatever its phase."""

    def __init__(self) -> None:
        self.outputs: dict[str, str] = {}
        self.is_complete = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the traceback and the captured output of a failed set-up, call or teardown."""
        if report.failed:
            sections = [f"{report.when}: {report.longreprtext}", *(f"{name}\n{text}" for name, text in report.sections)]
            self.outputs[report.nodeid] = self.outputs.get(report.nodeid, "") + "\n".join(sections) + "\n"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Note whether the run ended before its last test, by --session-timeout or --maxfail for example."""
        self.is_complete = not (session.shouldfail or session.shouldstop)


def run(kept: Path, arguments: Sequence[str]) -> int:
    """Return 0 if each test passed in the run of `pytest arguments` or after it alone; otherwise pytest's status."""
    failures = Failures()
    status = int(pytest.main(list(arguments), plugins=[failures]))
    if status != pytest.ExitCode.TESTS_FAILED or not failures.outputs or not failures.is_complete:
        return status
    files: dict[str, list[str]] = {}
    for test in failures.outputs:
        files.setdefault(test.partition("::")[0], []).append(test)
    if len(files) > FILES_MAX:
        print(f"tests of {len(files)} files failed: no second try")
        return status
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    said: list[str] = []
    failed = 0
    for file, tests in files.items():
        output = kept / f"{file.replace('/', '.')}.txt"
        output.write_text("\n".join(f"{test}\n{failures.outputs[test]}" for test in tests))
        passed = pass_alone(tests)
        failed += 0 if passed else len(tests)
        outcome = "FLAKY (failed, then passed alone)" if passed else "FAILED TWICE"
        said += [f"{outcome}: {test}, see {output}" for test in tests]
    print("", *said, f"{len(failures.outputs) - failed} passed, {failed} failed", sep="\n")
    return status if failed else 0


def pass_alone(tests: Sequence[str]) -> bool:
    """Run the failed tests of one file in a pytest of their own, without workers. What is skipped has not passed."""
    print("\nsecond try:", *tests, flush=True)
    results = Path(".pytest_cache/second_try.xml")
    results.unlink(missing_ok=True)
    run = subprocess.run([sys.executable, "-m", "pytest", f"--junitxml={results}", *tests], check=False)
    return run.returncode == 0 and ElementTree.parse(results).getroot()[0].attrib["skipped"] == "0"


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
