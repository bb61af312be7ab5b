"""The clean-shutdown marker of a data directory.

    .kafka_cleanshutdown    {"version":0,"brokerEpoch":12}    no newline

Its existence means that all logs were flushed and closed and their indexes trimmed, so nothing needs recovery. It is
removed before any log is loaded, so that a crash while loading counts as unclean. Source: Kafka
CleanShutdownFileHandler.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.storage.files.durable_files import sync_directory, write_durably

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1


class CleanShutdownMarker:
    """The marker of one data directory."""

    def __init__(self, log_dir: Path) -> None:
        self.path = log_dir / CLEAN_SHUTDOWN_FILE

    def take(self) -> bool:
        """Remove the marker durably; return whether it was there, that is, the last stop was clean. Raises OSError."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        sync_directory(self.path.parent)
        return True

    def write(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Mark the stop as clean. Raises OSError."""
        write_durably(self.path, f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode("ascii"))
