"""`barnabas log ...`: tools for a log's files, which need no running broker."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.commands.exit_codes import ExitCode

_EXISTING_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def log() -> None:
    """Inspect, verify and repair a log's files, without a running broker."""


@log.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line.")
@click.option(
    "--records/--no-records",
    "--deep-iteration",
    "records",
    default=False,
    show_default=True,
    help="Also show each batch's records: offset, timestamp, sizes, sequence, header keys.",
)
@click.option("--data", "--print-data-log", "data", is_flag=True, help="Also show the records' keys and payloads.")
@click.option(
    "--cluster-metadata",
    "--cluster-metadata-decoder",
    "cluster_metadata",
    is_flag=True,
    help="Decode the payloads as records of the metadata log.",
)
@click.option(
    "--offsets", "--offsets-decoder", "offsets", is_flag=True, help="Decode the records as those of __consumer_offsets."
)
@click.option(
    "--transaction-log",
    "--transaction-log-decoder",
    "transaction_log",
    is_flag=True,
    help="Decode the records as those of __transaction_state.",
)
@click.option(
    "--share-group-state",
    "--share-group-state-decoder",
    "share_group_state",
    is_flag=True,
    help="Decode the records as those of __share_group_state.",
)
@click.option(
    "--from-offset", type=click.IntRange(min=0), metavar="N", help="Start with the batch that contains offset N."
)
@click.option("--max-batches", type=click.IntRange(min=1), metavar="N", help="Stop after N batches.")
@click.option("--max-records", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
def dump(
    paths: tuple[Path, ...],
    as_json: bool,
    records: bool,
    data: bool,
    cluster_metadata: bool,
    offsets: bool,
    transaction_log: bool,
    share_group_state: bool,
    from_offset: int | None,
    max_batches: int | None,
    max_records: int | None,
) -> int:
    """Show the contents of log files, with the field names of Kafka's DumpLogSegments.

    PATH is a file (.log, .index, .timeindex, .txnindex, .snapshot, .checkpoint, the checkpoints of a directory,
    leader-epoch-checkpoint, partition.metadata, meta.properties) or a directory, whose files of these kinds are shown.
    The kind is taken from the file's name. Damaged data is shown as far as possible, with isvalid: false; the exit code
    is 1 if some data could not be decoded at all.
    """
    from barnabas.commands.log.coordinator_json import CoordinatorLog
    from barnabas.commands.log.dump import Dump, DumpOptions

    decoders = {
        None: cluster_metadata,
        CoordinatorLog.OFFSETS: offsets,
        CoordinatorLog.TRANSACTIONS: transaction_log,
        CoordinatorLog.SHARE_GROUP_STATE: share_group_state,
    }
    chosen = [log for log, is_chosen in decoders.items() if is_chosen]
    if len(chosen) > 1:
        raise click.UsageError("give one decoder: a log has the records of one topic")
    with_data = data or bool(chosen)
    work = Dump(
        DumpOptions(
            as_json=as_json,
            records=records or with_data or max_records is not None,
            data=with_data,
            cluster_metadata=cluster_metadata,
            coordinator=chosen[0] if chosen else None,
            from_offset=from_offset,
            max_batches=max_batches,
            max_records=max_records,
        )
    )
    work.run(paths)
    return ExitCode.FAILED if work.failures else ExitCode.OK


@log.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_EXISTING_DIRECTORY)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line: findings, then a summary.")
def verify(directories: tuple[Path, ...], as_json: bool) -> int:
    """Verify all files in data directories or in single partitions' directories, without changing them.

    Verified are names, checkpoints and properties; each batch's CRC, records, offsets and timestamps; both indexes and
    the producer snapshots against the batches; and whether the metadata log can be replayed. Each finding is one line
    with the file and the position in it; with any finding, the exit code is 1. While a broker runs, a note says so,
    and the data that it is writing is not checked.
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
    help="Bytes between two entries. Default: the topic's index.interval.bytes, or 4096.",
)
def reindex(directory: Path, index_interval_bytes: int | None) -> int:
    """Rebuild .index and .timeindex from the batches, for a data directory's logs or for one partition's directory.

    Refused while a broker uses the data directory. At a damaged batch, the rest of that log is left as it is, and the
    exit code is 1.
    """
    from barnabas.commands.log.reindex import reindex_directory

    return ExitCode.FAILED if reindex_directory(directory, index_interval_bytes) else ExitCode.OK


@log.command()
@click.argument("directory", metavar="DIR", type=_EXISTING_DIRECTORY)
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", required=True, help="New end offset of the log.")
@click.option("--yes", "without_asking", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and change nothing.")
def truncate(directory: Path, to_offset: int, without_asking: bool, dry_run: bool) -> None:
    """Remove all records at offset N and above from one partition's log, irrevocably.

    DIR is the partition's directory. Batches are never split: the batch that contains N is removed as a whole. Producer
    snapshots, leader epochs and the data directory's checkpoints are adjusted. Refused while a broker uses the data
    directory.
    """
    from barnabas.commands.log.truncate import truncate_directory

    truncate_directory(directory, to_offset, without_asking=without_asking, dry_run=dry_run)


@log.command()
@click.argument("directory", metavar="DIR", type=_EXISTING_DIRECTORY)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and change nothing.")
@click.option(
    "--dedupe-buffer-size",
    "map_bytes",
    type=click.IntRange(min=1 << 20, max=2**31 - 1),
    default=128 << 20,
    show_default=True,
    metavar="BYTES",
    help="Memory for the map from key to offset: 24 bytes per key. A smaller map needs more rounds.",
)
@click.option(
    "--metadata-log-dir",
    type=_EXISTING_DIRECTORY,
    metavar="DIR",
    help="Directory with the metadata log, which has the topics' and the dynamic configs. Default: DIR itself.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The broker's server.properties, whose values hold for topics without their own. Default: BARNABAS_CONFIG.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line: partitions, then a summary.")
def compact(
    directory: Path,
    dry_run: bool,
    map_bytes: int,
    metadata_log_dir: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> int:
    """Compact logs of topics with cleanup.policy=compact now: all of a data directory, or one partition's.

    The last record of each key stays, at its offset. As in a broker, the active segment, records younger than
    min.compaction.lag.ms, and tombstones for delete.retention.ms are kept. Progress is written to
    cleaner-offset-checkpoint, from which the broker continues. Refused while a broker uses the data directory, except
    for a dry run. A log that cannot be compacted is left as it is, and the exit code is 1.
    """
    from barnabas.commands.log.compact import compact_directory

    failures = compact_directory(
        directory,
        metadata_log_dir=metadata_log_dir,
        config_file=config_file,
        dry_run=dry_run,
        as_json=as_json,
        map_bytes=map_bytes,
    )
    return ExitCode.FAILED if failures else ExitCode.OK


@log.command(name="abort-transaction")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_EXISTING_DIRECTORY)
@click.option("--producer-id", type=click.IntRange(min=0), metavar="N", help="Only this producer's. Default: all.")
@click.option("--yes", "without_asking", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show the open transactions, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line for each open transaction.")
def abort_transaction(
    directories: tuple[Path, ...], producer_id: int | None, without_asking: bool, dry_run: bool, as_json: bool
) -> int:
    """Abort transactions that were left open, in data directories (all of log.dirs) or one partition's directory.

    read_committed consumers stop at the first record of an open transaction. A broker that starts on the directory ends
    the transactions in its __transaction_state; this command is for hanging ones, which are not in it, and for files
    that no broker opens. It writes the abort marker that the coordinator would have written. A transaction that is
    already committed is left alone, and the exit code is 1. Refused while a broker uses the data directory.
    """
    from barnabas.commands.log.abort_transaction import abort_transactions

    left = abort_transactions(
        directories, producer_id=producer_id, without_asking=without_asking, dry_run=dry_run, as_json=as_json
    )
    return ExitCode.FAILED if left else ExitCode.OK
