"""The error of this package: a sentence with the property and the origin of its value."""

from __future__ import annotations


class ConfigError(Exception):
    """A refused value, name or combination; `str(error)` is the complete sentence.

    The form is `log.segment.bytes=12x in server.properties line 7: not an int`: setting, origin, fault.
    """


class CombinationError(ConfigError):
    """A refused combination of the values of `names`, each of which is legal."""

    def __init__(self, sentence: str, *names: str) -> None:
        super().__init__(sentence)
        self.names = names
