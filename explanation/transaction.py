"""Explained transactions as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.explanation.transaction_findings import (
    ExplainedTransactions,
    Holder,
    KnownTransaction,
    PartitionFinding,
    Verdict,
)
from barnabas.explanation.wording import counted, duration_text, time_text


def json_of(explained: ExplainedTransactions) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    return {
        "now_ms": explained.now_ms,
        "transactions": [_transaction(each) for each in explained.transactions],
        "partitions": [
            {
                "topic": each.partition.topic_partition.topic,
                "partition": each.partition.topic_partition.partition,
                **_held_back(each),
            }
            for each in explained.partitions
        ],
    }


def partition_json(explained: ExplainedTransactions | None) -> dict[str, Any] | None:
    """The part about transactions in the document of one partition; None without the right to READ its topic."""
    if explained is None:
        return None
    (finding,) = explained.partitions
    return _held_back(finding)


def partition_sentences(explained: ExplainedTransactions | None, *, is_stored: bool) -> Iterator[str]:
    """The lines about transactions of one partition, as `sentences_of`."""
    if explained is None:
        yield "open transactions are not shown: they need READ on the topic"
    else:
        yield from sentences_of(explained, is_stored=is_stored)


def sentences_of(explained: ExplainedTransactions, *, is_stored: bool = False) -> Iterator[str]:
    """The lines for people: each transactional id that was asked about, then each partition.

    `is_stored`: of a stopped broker, which other commands are for.
    """
    for known in explained.transactions:
        yield _about(known, explained.now_ms)
    if not explained.partitions and not explained.transactions:
        yield "no transaction is open in any partition"
    for finding in explained.partitions:
        yield _offsets(finding)
        for holder in finding.holders:
            sentence, advice = holder_sentences(holder, finding, explained.now_ms)
            yield f"  {sentence}"
            yield f"    {_stored_advice(holder) if is_stored else advice}"


def holder_sentences(holder: Holder, finding: PartitionFinding, now_ms: int) -> tuple[str, str]:
    """What an open transaction holds back, and what ends it in a running broker."""
    return _sentence(holder, now_ms), _advice(holder, finding, now_ms)


def _transaction(known: KnownTransaction) -> dict[str, Any]:
    return {
        "transactional_id": known.transactional_id,
        "state": known.state,
        "producer_id": known.producer_id,
        "producer_epoch": known.producer_epoch,
        "timeout_ms": known.timeout_ms,
        "start_time_ms": known.start_time_ms,
    }


def _held_back(finding: PartitionFinding) -> dict[str, Any]:
    return {
        "high_watermark": finding.partition.high_watermark,
        "last_stable_offset": finding.partition.last_stable_offset,
        "held_back": finding.held_back,
        "open_transactions": [_holder(holder) for holder in finding.holders],
    }


def _holder(holder: Holder) -> dict[str, Any]:
    transaction = holder.transaction
    return {
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "start_offset": transaction.start_offset,
        "last_timestamp_ms": transaction.last_timestamp_ms,
        "transactional_id": None if holder.known is None else holder.known.transactional_id,
        "verdict": holder.verdict.value,
        "holds_last_stable_offset": holder.holds_last_stable_offset,
        "aborted_at_ms": holder.aborted_at_ms,
    }


def _about(known: KnownTransaction, now_ms: int) -> str:
    who = f"transactional id {known.transactional_id} (producer {known.producer_id}, epoch {known.producer_epoch})"
    if known.start_time_ms is None:
        return f"{who} is {known.state}: it has no open transaction and holds nothing back"
    age = duration_text(now_ms - known.start_time_ms)
    where = counted(len(known.partitions), "partition")
    return f"{who} is {known.state}: open for {age}, since {time_text(known.start_time_ms)}, in {where}"


def _offsets(finding: PartitionFinding) -> str:
    partition = finding.partition
    where = f"{partition.topic_partition}: last stable offset {partition.last_stable_offset}"
    if finding.holders:
        count = counted(len(finding.holders), "open transaction")
        return f"{where}, {counted(finding.held_back, 'offset')} before the end {partition.high_watermark}; {count}"
    if finding.held_back:
        return (
            f"{where}, {counted(finding.held_back, 'offset')} before the end {partition.high_watermark}; "
            "a transaction ended or began during the question: ask again"
        )
    return f"{where} is at the end: no open transaction holds it back"


def _sentence(holder: Holder, now_ms: int) -> str:
    transaction, known = holder.transaction, holder.known
    who = f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}"
    if known is not None:
        who = f"{known.transactional_id} ({who})"
    what = f"{who} has a transaction open from offset {transaction.start_offset} on"
    if transaction.last_timestamp_ms >= 0:
        silence = duration_text(max(0, now_ms - transaction.last_timestamp_ms))
        what += f", last record {silence} ago ({time_text(transaction.last_timestamp_ms)})"
    if holder.holds_last_stable_offset:
        return f"{what}: read_committed consumers stop there"
    return f"{what}: it waits behind the one above"


def _advice(holder: Holder, finding: PartitionFinding, now_ms: int) -> str:
    """What ends the transaction, and what an operator can do."""
    known = holder.known
    if known is None:
        topic, number = finding.partition.topic_partition
        return (
            "it hangs: no coordinator knows it in this partition, so nothing ends it; "
            f"`barnabas transaction abort --topic {topic} --partition {number} "
            f"--producer-id {holder.transaction.producer_id}` writes its abort marker"
        )
    command = f"`barnabas transaction abort {known.transactional_id}`"
    timeout = f"transaction.timeout.ms={known.timeout_ms} of its producer"
    match holder.verdict:
        case Verdict.MISSING_MARKER:
            return (
                f"it is {known.state}: decided, and the coordinator has not written its marker here yet; if that "
                "stays so, the broker's log names the error"
            )
        case Verdict.NO_TIMEOUT:
            return f"it has no timeout (two-phase commit): its producer ends it, or {command}"
        case Verdict.OVERDUE:
            since = time_text(holder.aborted_at_ms or 0)
            return (
                f"its timeout was over at {since} ({timeout}): the coordinator aborts it at its next check, every "
                f"transaction.abort.timed.out.transaction.cleanup.interval.ms; {command} does so now"
            )
        case _:
            at_ms = holder.aborted_at_ms or 0
            return (
                f"the coordinator aborts it at {time_text(at_ms)}, in {duration_text(at_ms - now_ms)} ({timeout}), "
                f"unless its producer ends it; {command} aborts it now and fences the producer"
            )


def _stored_advice(holder: Holder) -> str:
    """What ends the transaction when no broker runs, or one starts."""
    known = holder.known
    command = f"`barnabas log abort-transaction DIR... --producer-id {holder.transaction.producer_id}`"
    if known is None:
        return f"it hangs: no coordinator knows it in this partition, so no start ends it; {command} does"
    match holder.verdict:
        case Verdict.MISSING_MARKER:
            return f"it is {known.state}: decided, and the next start of a broker writes its marker here"
        case Verdict.NO_TIMEOUT:
            return f"it has no timeout (two-phase commit): its producer ends it after a start, or {command} does now"
        case _:
            timeout = f"transaction.timeout.ms={known.timeout_ms} of its producer, over at"
            return (
                f"a broker that starts here aborts it ({timeout} {time_text(holder.aborted_at_ms or 0)}), unless its "
                f"producer ends it; {command} aborts it now"
            )
