"""`barnabas pipeline`: help, usage errors, and the error without Spark."""

from __future__ import annotations

import builtins
from typing import Any

import click
import pytest
from click.testing import CliRunner

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.main import main
from barnabas.commands.pipeline.job import SessionChoice, run_job, session_options
from barnabas.commands.pipeline.pipeline import JOBS

_CHOICE = SessionChoice(None, {}, debug=False, as_json=False)


def test_the_list_of_jobs_imports_none() -> None:
    result = CliRunner().invoke(main, ["pipeline", "--help"])
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.output for name in JOBS)


def test_without_pyspark_a_job_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_spark(name: str, *args: Any, **extra: Any) -> Any:
        if name.startswith("barnabas.pipeline"):
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
        return real_import(name, *args, **extra)

    monkeypatch.setattr(builtins, "__import__", no_spark)
    with pytest.raises(CommandFailure, match=r"pip install '\.\[spark\]'") as raised:
        run_job("stats", _CHOICE, lambda spark: pytest.fail("there is no session"))
    assert raised.value.exit_code == ExitCode.USAGE


def test_a_missing_module_of_the_project_is_not_reported_as_missing_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def broken(name: str, *args: Any, **extra: Any) -> Any:
        if name.startswith("barnabas.pipeline"):
            raise ModuleNotFoundError("No module named 'barnabas.oops'", name="barnabas.oops")
        return real_import(name, *args, **extra)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(ModuleNotFoundError, match=r"barnabas\.oops"):
        run_job("stats", _CHOICE, lambda spark: pytest.fail("there is no session"))


def test_the_options_of_a_session_reach_the_command() -> None:
    seen: list[SessionChoice] = []

    @click.command()
    @session_options
    def job(session: SessionChoice) -> None:
        seen.append(session)

    options = ["--master", "spark://h:7077", "--conf", "spark.driver.memory=4g", "--conf", "a=b=c", "--json"]
    assert CliRunner().invoke(job, options).exit_code == 0
    assert seen == [SessionChoice("spark://h:7077", {"spark.driver.memory": "4g", "a": "b=c"}, False, True)]
    assert CliRunner().invoke(job, ["--conf", "nothing"]).exit_code == ExitCode.USAGE
    assert "is not of the form name=value" in CliRunner().invoke(job, ["--conf", "nothing"]).output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["archive", "--to", "a"], "give either topics or --pattern"),
        (["archive", "t", "--pattern", "x", "--to", "a"], "give either topics or --pattern"),
        (["archive", "t"], "Missing option '--to'"),
        (["replay", "a"], "Missing option '--state'"),
        (["replay", "a", "--state", "s", "--topic", "=b"], "is not of the form name=value"),
        (["replay", "a", "--state", "s", "--topic", "a=b", "--topic", "a=c"], "--topic gives a twice"),
    ],
)
def test_archive_and_replay_check_their_options_before_spark_starts(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(main, ["pipeline", *arguments])
    assert result.exit_code == ExitCode.USAGE
    assert sentence in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["whatif", "--log-dir", "s3://bucket/logs"],
        ["stats", "--log-dir", "s3://bucket/logs"],
        ["audit", "--log-dir", "s3://bucket/logs"],
        ["whatif", "--log-dir", ".", "--metadata-log-dir", "s3://bucket/logs"],
    ],
)
def test_a_job_that_cannot_read_object_stores_names_those_that_can(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, ["pipeline", *arguments])
    assert result.exit_code == ExitCode.USAGE
    assert "s3://bucket/logs: this reads local or shared file systems only" in result.output
    assert "'archive --log-dir'" in result.output
