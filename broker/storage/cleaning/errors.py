"""Why a round of the cleaner ends early, and so what its caller does about it. In each case the log is as it was.

A disk that fails is none of these: the log has then reported its directory and goes offline, and the OSError goes on.
"""

from __future__ import annotations

from barnabas.broker.storage.files.errors import CorruptFileError, StorageError


class CleaningAborted(Exception):
    """The log is wanted by somebody else (truncation, deletion, a move): what `check_done` raises. Not an error."""


class CleaningOutOfRoom(StorageError):
    """No room on the disk, or no descriptors or memory: the round may be tried again after the back-off."""


class UncleanableLogError(CorruptFileError):
    """The log holds what cannot be cleaned: a corrupt batch, records that break the format. Trying again is useless."""
