"""The one error of this package: a sentence that names the property and where its value came from."""

from __future__ import annotations


class ConfigError(Exception):
    """A value, a name or a combination that Barnabas refuses; `str(error)` is the whole sentence.

    The shape is `log.segment.bytes=12x in server.properties line 7: not an int`: what was said, where, what is wrong.
    """
