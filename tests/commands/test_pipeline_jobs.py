"""Usage errors of the jobs' commands before Spark starts, and the policies of whatif."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.main import main
from barnabas.commands.pipeline.source import SourceChoice, source_options
from barnabas.protocol.messages.topics.topics import NewTopic
from barnabas.protocol.metadata.records import ConfigRecord
from tests.support.storage.metadata_store import opened


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["pipeline", *arguments])
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("stats",), "give --bootstrap HOST:PORT or --log-dir DIR"),
        (("stats", "--bootstrap", "h:1"), "give at least one --topic"),
        (("stats", "--bootstrap", "h:1", "--log-dir", "."), "--bootstrap and --log-dir exclude each other"),
        (("stats", "--bootstrap", "nonsense", "--topic", "a"), "nonsense"),
        (("stats", "--log-dir", "nowhere"), "'nowhere' does not exist"),
        (("stats", "--log-dir", ".", "--option", "mode"), "'mode' is not of the form name=value"),
        (("stats", "--log-dir", ".", "--top", "-1"), "--top"),
        (("snapshot", "--log-dir", "."), "Missing option '--output'"),
        (("whatif",), "give a data directory: --log-dir DIR"),
        (("whatif", "--log-dir", ".", "--set", "retention.ms"), "'retention.ms' is not of the form name=value"),
        (("whatif", "--log-dir", ".", "--set", "a=1", "--set", "a=2"), "--set gives a twice: '1' and '2'"),
        (("whatif", "--log-dir", ".", "--now", "yesterday"), "'yesterday' is neither milliseconds since 1970 nor"),
        (("audit",), "give either --log-dir DIR, or --bootstrap"),
        (("audit", "--bootstrap", "h:1"), "--bootstrap and --compacted need --archive"),
        (("audit", "--log-dir", ".", "--compacted"), "--bootstrap and --compacted need --archive"),
        (("audit", "--log-dir", ".", "--archive", "a"), "give at least one --topic of the archive"),
        (
            ("audit", "--log-dir", ".", "--bootstrap", "h:1", "--archive", "a", "--topic", "t"),
            "give either --log-dir DIR",
        ),
    ],
)
def test_wrong_usage_is_one_sentence_without_spark(arguments: tuple[str, ...], sentence: str) -> None:
    code, output = run(*arguments)
    assert code == ExitCode.USAGE
    assert sentence in output


def test_the_command_config_names_the_broker(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=h:1\n")
    found: list[SourceChoice] = []

    @click.command()
    @source_options
    def job(choice: SourceChoice) -> None:
        found.append(choice)

    given = ["--command-config", str(path)]
    for arguments in ([], ["--bootstrap", "i:2"], ["--log-dir", str(tmp_path)]):
        result = CliRunner().invoke(job, ["--topic", "t", *arguments, *given])
        assert result.exit_code == 0, result.output
    assert [(each.bootstrap, each.log_dirs) for each in found] == [("h:1", ()), ("i:2", ()), (None, (tmp_path,))]
    code, output = run("audit", "--archive", "a", *given)
    assert (code, "give at least one --topic of the archive" in output) == (ExitCode.USAGE, True)


def test_policies_are_the_topics_own_configs_under_the_changes(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from barnabas.commands.pipeline.policies import policies_of

    notes: list[str] = []
    first, second = policies_of(
        {"b", "a"}, {"retention.ms": "1000", "cleanup.policy": "compact"}, tmp_path, notes.append
    )

    assert (first.topic, second.topic) == ("a", "b")
    assert (first.retention_ms, first.is_compact, first.is_delete) == (1000, True, False)
    assert first.retention_bytes == -1
    assert notes == [f"{tmp_path} has no metadata log, so default configs are assumed (see --metadata-log-dir)"]


def test_policies_take_the_brokers_dynamic_values_and_free_nothing_under_one_that_is_not_understood(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyspark")
    from barnabas.commands.pipeline.policies import policies_of

    with opened(tmp_path) as node:
        node.store.commit([ConfigRecord(4, "", "log.retention.ms", "5"), ConfigRecord(4, "1", "log.roll.ms", "soon")])
        node.create(NewTopic(name="b"))
        node.store.commit([ConfigRecord(4, "", "log.cleaner.max.compaction.lag.ms", "5")])
        node.store.commit([ConfigRecord(2, "b", "min.compaction.lag.ms", "9")])
    assert policies_of({"b"}, {"retention.ms": "7"}, tmp_path, lambda note: None)[0].retention_ms == 7
    (policy,) = policies_of({"a"}, {}, tmp_path, lambda note: None)
    assert (policy.retention_ms, policy.is_delete, policy.is_compact) == (5, False, False)
    (policy,) = policies_of({"a"}, {"segment.ms": "7"}, tmp_path, lambda note: None)
    assert policy.is_delete


def test_an_invalid_topic_setting_is_refused_with_its_name(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from barnabas.commands.failures import CommandFailure
    from barnabas.commands.pipeline.policies import policies_of

    for setting, value, word in (("retention.ms", "soon", "retention.ms=soon"), ("retention.sm", "1", "retention.ms")):
        with pytest.raises(CommandFailure, match=word) as raised:
            policies_of({"orders"}, {setting: value}, tmp_path, lambda note: None)
        assert raised.value.exit_code == ExitCode.USAGE
        assert "orders" in raised.value.message
