"""`barnabas explain durability`: what a power cut would cost now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse, SettingValue

_SHOWN_MAX: Final = 20
_NEVER: Final = str((1 << 63) - 1)


class Unsynced(NamedTuple):
    """A partition with records that are not on the disk, and the settings that decide when they are."""

    topic: str
    partition: int
    durable_offset: int
    log_end_offset: int
    size_bytes: int
    settings: Mapping[str, SettingValue]

    @property
    def records(self) -> int:
        """Offsets from the first unsynced one on."""
        return self.log_end_offset - self.durable_offset


@click.command()
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; may be repeated.")
@json_option
@bootstrap_option
@timeout_option
def durability(topics: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Explain what a power cut would cost right now: the records that are stored and not yet synced.

    For each partition: how many records and bytes, and which settings decide when they are on the disk.
    """
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> dict[str, ExplainTopicResponse]:
        names = topics or [each.name for each in await admin.list_topics()]
        return {name: await admin.explain_topic(name) for name in names}

    found = unsynced_of(with_admin(bootstrap, timeout_s, work))
    if as_json:
        print_json(durability_json(found))
        return
    for sentence in durability_sentences(found):
        print_line(sentence)


def unsynced_of(explained: Mapping[str, ExplainTopicResponse]) -> list[Unsynced]:
    """Return the partitions with unsynced records, those with most bytes first."""
    found = [
        Unsynced(
            topic,
            each.partition,
            each.durable_offset,
            each.log_end_offset,
            each.unsynced_bytes,
            {setting.name: setting for setting in answer.settings if setting.name.startswith("flush.")},
        )
        for topic, answer in explained.items()
        for each in answer.partitions
        if each.durable_offset < each.log_end_offset
    ]
    return sorted(found, key=lambda each: (-each.size_bytes, each.topic, each.partition))


def durability_json(found: Sequence[Unsynced]) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    from barnabas.explanation.setting import value_json

    return {
        "unsynced_records": sum(each.records for each in found),
        "unsynced_bytes": sum(each.size_bytes for each in found),
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "durable_offset": each.durable_offset,
                "log_end_offset": each.log_end_offset,
                "unsynced_records": each.records,
                "unsynced_bytes": each.size_bytes,
                "settings": {name: value_json(value) for name, value in each.settings.items()},
            }
            for each in found
        ],
    }


def durability_sentences(found: Sequence[Unsynced]) -> Iterator[str]:
    """The sum, then each partition, and what to change."""
    from barnabas.explanation.wording import counted

    if not found:
        yield "a power cut would cost nothing now: every stored record is synced"
        return
    yield (
        f"a power cut would cost up to {counted(sum(each.records for each in found), 'record')} "
        f"({sum(each.size_bytes for each in found):,} bytes) in {counted(len(found), 'partition')}: they are in the "
        "page cache, not on the disk; a crash of the process costs nothing"
    )
    for each in found[:_SHOWN_MAX]:
        yield (
            f"  {each.topic}-{each.partition}: {counted(each.records, 'record')} ({each.size_bytes:,} bytes), offsets "
            f"{each.durable_offset} to {each.log_end_offset - 1}; {_when(each.settings)}"
        )
    if len(found) > _SHOWN_MAX:
        yield f"  and {counted(len(found) - _SHOWN_MAX, 'partition')} more: --json has all"
    yield (
        "to let producers wait for the disk, set flush.acks.all=true (acks=all) or flush.messages=1 (any acks) on the "
        "topic; flush.ms bounds the loss in time (docs/durability.md)"
    )


def _when(settings: Mapping[str, SettingValue]) -> str:
    count, interval, acks_all = settings["flush.messages"], settings["flush.ms"], settings.get("flush.acks.all")
    limits = [
        f"{each.name}={each.value} ({each.origin})" for each in (count, interval) if each.value not in (None, _NEVER)
    ]
    sentence = (
        f"synced by {' or '.join(limits)}"
        if limits
        else f"synced when their segment rolls or the broker stops: no flush.messages, no flush.ms ({count.origin})"
    )
    if acks_all is not None and acks_all.value == "true":
        return f"written with acks=1 or 0, because acks=all waits (flush.acks.all=true, {acks_all.origin}); {sentence}"
    return sentence
