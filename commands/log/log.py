"""`barnabas log ...`: tools for a log's files, which need no running broker and ask none."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode

_EXISTING_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def log() -> None:
    """Look into a log's files, check and repair them, without a running broker."""


@log.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
@click.option(
    "--records/--no-records",
    "--deep-iteration",
    "records",
    default=False,
    show_default=True,
    help="Each batch's records, too: offset, timestamp, sizes, sequence, header keys.",
)
@click.option("--data", "--print-data-log", "data", is_flag=True, help="Records with their keys and payloads.")
@click.option(
    "--cluster-metadata",
    "--cluster-metadata-decoder",
    "cluster_metadata",
    is_flag=True,
    help="The payloads are records of the metadata log: write what they say.",
)
@click.option(
    "--from-offset", type=click.IntRange(min=0), metavar="N", help="Begin with the batch that holds offset N."
)
@click.option("--max-batches", type=click.IntRange(min=1), metavar="N", help="End after so many batches.")
@click.option("--max-records", type=click.IntRange(min=1), metavar="N", help="End after so many records.")
def dump(
    paths: tuple[Path, ...],
    as_json: bool,
    records: bool,
    data: bool,
    cluster_metadata: bool,
    from_offset: int | None,
    max_batches: int | None,
    max_records: int | None,
) -> int:
    """Show what is in log files, in the fields and names of Kafka's DumpLogSegments.

    PATH is a file (.log, .index, .timeindex, .txnindex, .snapshot, .checkpoint, the checkpoints of a directory,
    leader-epoch-checkpoint, partition.metadata, meta.properties) or a directory, of which all such files are shown. A
    file's name says what it is. What is damaged is shown as far as it can be, with isvalid: false; the exit code is 1
    when something could not be decoded at all.
    """
    from barnabas.commands.log.dump import Dump, DumpOptions

    with_data = data or cluster_metadata
    work = Dump(
        DumpOptions(
            as_json=as_json,
            records=records or with_data or max_records is not None,
            data=with_data,
            cluster_metadata=cluster_metadata,
            from_offset=from_offset,
            max_batches=max_batches,
            max_records=max_records,
        )
    )
    work.run(paths)
    return ExitCode.FAILED if work.failures else ExitCode.OK


@log.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_EXISTING_DIRECTORY)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line: findings, then a summary.")
def verify(directories: tuple[Path, ...], as_json: bool) -> int:
    """Check everything in data directories, or in single partitions' directories; nothing is changed.

    Checked are names, checkpoints and properties; each batch's CRC, records, offsets and timestamps; both indexes and
    the producer snapshots against the batches; and whether the metadata log can be replayed. Each finding is one line
    that names the file and the position in it; with any, the exit code is 1. It may run beside a broker: it says so,
    and does not judge what is just being written.
    """
    from barnabas.commands.log.verify import Verification

    work = Verification(directories, as_json=as_json)
    work.run()
    return ExitCode.FAILED if work.findings else ExitCode.OK


@log.command()
@click.argument("directory", metavar="DIR", type=_EXISTING_DIRECTORY)
@click.option(
    "--index-interval-bytes",
    type=click.IntRange(min=0),
    metavar="N",
    help="Bytes between two entries. Without it: the topic's index.interval.bytes, 4096 unless set.",
)
def reindex(directory: Path, index_interval_bytes: int | None) -> int:
    """Build .index and .timeindex anew from the batches, of a data directory's logs or of one partition's directory.

    Refused while a broker uses the data directory. A log with damaged batches is left as it is from there on, and the
    exit code is 1.
    """
    from barnabas.commands.log.reindex import reindex_directory

    return ExitCode.FAILED if reindex_directory(directory, index_interval_bytes) else ExitCode.OK


@log.command()
@click.argument("directory", metavar="DIR", type=_EXISTING_DIRECTORY)
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", required=True, help="Where the log is to end.")
@click.option("--yes", "without_asking", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
def truncate(directory: Path, to_offset: int, without_asking: bool, dry_run: bool) -> None:
    """Cut the end of one partition's log off: all records at offset N and above, for good.

    DIR is the partition's directory. A batch is never cut: one that holds N goes whole. Producer snapshots, leader
    epochs and the data directory's checkpoints are brought in line. Refused while a broker uses the data directory.
    """
    from barnabas.commands.log.truncate import truncate_directory

    truncate_directory(directory, to_offset, without_asking=without_asking, dry_run=dry_run)


@log.command()
@click.argument("directory", metavar="DIR", type=_EXISTING_DIRECTORY)
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@click.option(
    "--dedupe-buffer-size",
    "map_bytes",
    type=click.IntRange(min=1 << 20, max=2**31 - 1),
    default=128 << 20,
    show_default=True,
    metavar="BYTES",
    help="Memory for the map from key to offset: 24 bytes a key. A smaller one takes more rounds.",
)
@click.option(
    "--metadata-log-dir",
    type=_EXISTING_DIRECTORY,
    metavar="DIR",
    help="Where the metadata log is, with the topics' configs. Without it: the data directory itself.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line: partitions, then a summary.")
def compact(directory: Path, dry_run: bool, map_bytes: int, metadata_log_dir: Path | None, as_json: bool) -> int:
    """Compact the logs of topics with cleanup.policy=compact now: of a data directory all, or one partition's.

    Of each key the last record stays, at its offset. What a broker keeps is kept here, too: the active segment, records
    younger than min.compaction.lag.ms, and tombstones for delete.retention.ms. Progress is written to
    cleaner-offset-checkpoint, where the broker goes on. Refused while a broker uses the data directory. A log that
    cannot be compacted is left as it is, and the exit code is 1.
    """
    from barnabas.commands.log.compact import compact_directory

    failures = compact_directory(
        directory, metadata_log_dir=metadata_log_dir, dry_run=dry_run, as_json=as_json, map_bytes=map_bytes
    )
    return ExitCode.FAILED if failures else ExitCode.OK


@log.command(name="abort-transaction")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_EXISTING_DIRECTORY)
@click.option("--producer-id", type=click.IntRange(min=0), metavar="N", help="Only this producer's. Without it: all.")
@click.option("--yes", "without_asking", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say which are open, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line for each open transaction.")
def abort_transaction(
    directories: tuple[Path, ...], producer_id: int | None, without_asking: bool, dry_run: bool, as_json: bool
) -> int:
    """End the transactions that nobody ended, of data directories (all of log.dirs) or of one partition's directory.

    A transaction that Kafka left open holds back what read_committed consumers see. It gets the abort marker that its
    coordinator would have written. One that the coordinator had committed already is left alone, and the exit code is
    1. Refused while a broker uses the data directory.
    """
    from barnabas.commands.log.abort_transaction import abort_transactions

    left = abort_transactions(
        directories, producer_id=producer_id, without_asking=without_asking, dry_run=dry_run, as_json=as_json
    )
    return ExitCode.FAILED if left else ExitCode.OK
