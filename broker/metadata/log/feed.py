"""MetadataFeed: the metadata log and its snapshots, as a standby of this broker copies them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.bootstrap_checkpoint import FILE_NAME
from barnabas.broker.metadata.log.snapshots import SnapshotId, list_snapshots, snapshot_path
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.standby import SnapshotName, StandbyResponse
from barnabas.protocol.records import iter_batches

if TYPE_CHECKING:
    from barnabas.broker.metadata.log.metadata_log import MetadataLog

_CHUNK_BYTES: Final = 4 * 1024 * 1024


class MetadataFeed:
    """Reads one metadata log. Every method blocks."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log

    def bootstrap_checkpoint(self) -> bytes:
        """Return the content of bootstrap.checkpoint. Raises OSError."""
        return (self._log.directory.parent / FILE_NAME).read_bytes()

    def read(self, offset: int, last_crc: int | None, end_offset: int) -> StandbyResponse:
        """Return whole batches from `offset` on, below `end_offset`, or the snapshot that comes before them.

        `last_crc`: CRC of the reader's batch before `offset`; with another one here, the answer says so. `end_offset`:
        the end of what is synced. Raises BrokerError.
        """
        log = self._log
        if offset < log.start_offset:
            newest = next(iter(list_snapshots(log.directory)), None)
            if newest is None:
                raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, f"{log.directory} has no snapshot")
            return StandbyResponse(end_offset=end_offset, snapshot=SnapshotName(*newest))
        if offset > end_offset or not self._is_common(offset, last_crc):
            return StandbyResponse(end_offset=end_offset, is_other_log=True)
        data = log.read(offset, _CHUNK_BYTES, end_offset)
        size = sum(batch.size_bytes for batch in iter_batches(data))
        return StandbyResponse(end_offset=end_offset, data=data[:size])

    def read_snapshot(self, snapshot: SnapshotName, position: int) -> bytes:
        """Return bytes of a snapshot from `position` on; none at its end.

        Raises BrokerError RESOURCE_NOT_FOUND, also for one that was deleted meanwhile.
        """
        try:
            with snapshot_path(self._log.directory, SnapshotId(snapshot.end_offset, snapshot.epoch)).open("rb") as file:
                file.seek(position)
                return file.read(_CHUNK_BYTES)
        except FileNotFoundError as error:
            raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, "the snapshot was deleted meanwhile") from error

    def _is_common(self, offset: int, last_crc: int | None) -> bool:
        """Return whether the batch before `offset` has a CRC; True if that batch is not here any more."""
        if last_crc is None or offset <= self._log.start_offset:
            return True
        batch = next(iter_batches(self._log.read(offset - 1, 1, offset)), None)
        return batch is not None and batch.next_offset == offset and batch.crc == last_crc


def crc_before(log: MetadataLog, offset: int) -> int | None:
    """Return the CRC of the batch that ends at `offset`; None if the log begins there. Raises MetadataError."""
    if offset <= log.start_offset:
        return None
    batch = next(iter_batches(log.read(offset - 1, 1, offset)), None)
    if batch is None or batch.next_offset != offset:
        raise MetadataError(f"{log.directory} has no batch that ends at offset {offset}")
    return batch.crc
