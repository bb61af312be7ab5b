"""Errors that end a round of the cleaner early; they leave the log as it was.

For a failed disk the log reports its directory, and the OSError itself is raised.
"""

from __future__ import annotations

from barnabas.broker.storage.files.errors import CorruptFileError, StorageError


class CleaningAborted(Exception):
    """The log is needed for a truncation, deletion or move; raised by `check_done`. Not a failure."""


class CleaningOutOfRoom(StorageError):
    """No disk space, descriptors or memory left: the round can be retried after the back-off."""


class UncleanableLogError(CorruptFileError):
    """The log has a corrupt batch or malformed records: retrying does not help."""
