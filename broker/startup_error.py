"""Why the broker does not start: one sentence for the operator, and a non-zero exit."""

from __future__ import annotations


class StartupError(Exception):
    """The text is the whole sentence; the cause, where there is one, is in the log at debug level."""
