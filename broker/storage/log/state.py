"""The states of a log: while it is in use, and while it is being loaded."""

from __future__ import annotations

from enum import Enum


class LogState(Enum):
    """Whether a log can be used. Compared by identity; the value is what messages and metrics show."""

    ONLINE = "online"
    OFFLINE = "offline"
    """Its log directory failed, or the log was taken out of service (deleted, set aside, moved)."""
    CLOSED = "closed"


class LoadState(Enum):
    """How far the loading of a log is; the value is what metrics show."""

    LOADING = "loading"
    RECOVERING = "recovering"
    ONLINE = "online"
    FAILED = "failed"
