"""`python -m demo`: exit code 0 if every record came back unchanged, 1 if not, 2 for wrong usage."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from barnabas import ClientError
from barnabas.clients.testing import BrokerProcessError
from demo.run import Demo, Options
from demo.screen import Screen
from demo.traffic import TrafficError


@click.command()
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="Only the first N rows of the file.")
@click.option("--partitions", type=click.IntRange(min=1), default=4, show_default=True, metavar="N")
@click.option("--segment-bytes", type=click.IntRange(min=1024), default=1024 * 1024, show_default=True, metavar="N")
@click.option(
    "--compression", type=click.Choice(("none", "gzip", "snappy", "lz4", "zstd")), default="none", show_default=True
)
@click.option("--keep", is_flag=True, help="Keep the data directory. It is always kept after a failure.")
def main(rows: int | None, partitions: int, segment_bytes: int, compression: str, keep: bool) -> None:
    """Send a year of flights through a new broker, restart it, and compare every record read back."""
    screen = Screen()
    directory = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    began = time.monotonic()
    is_good = False
    try:
        is_good = Demo(Options(rows, partitions, segment_bytes, compression), directory, screen).run()
    except (BrokerProcessError, TrafficError, ClientError) as error:
        screen.failed(str(error))
    except BaseExceptionGroup as group:  # the producer or the consumer failed, and the other was cancelled
        expected, unexpected = group.split((TrafficError, ClientError))
        if unexpected is not None or expected is None:
            raise
        for failure in expected.exceptions:
            screen.failed(str(failure))
    finally:
        if keep or not is_good:
            screen.say(f"kept: {directory} (data and the broker's log)")
        else:
            shutil.rmtree(directory)
    screen.say(
        f"{'every record came back unchanged' if is_good else 'the demo FAILED'}, {time.monotonic() - began:.1f} s"
    )
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main(prog_name="python -m demo")
