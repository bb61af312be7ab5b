"""StartupError: why the broker does not start."""

from __future__ import annotations


class StartupError(Exception):
    """The text is one sentence for the operator; a cause, if any, is logged at debug level."""
