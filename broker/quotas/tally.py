"""Tally: the numbers of a rate that change with each value, where compiled code can count.

The class has a compiled twin (kernels/_tally.pyx) with the same attributes. All else is in Rate.
"""

from __future__ import annotations

from barnabas.protocol.kernel_choice import load_compiled


class PythonTally:
    """What one rate counts for each value.

    Below `plain_until_ms`, a value that leaves `total` at most `allowed` is only added: to `total` and to `sample`,
    with its time in `last_ms`. Anything else is for Rate.
    """

    __slots__ = ("allowed", "last_ms", "plain_until_ms", "sample", "total")

    def __init__(self) -> None:
        self.total = 0.0
        """Sum of all samples."""
        self.sample = 0.0
        """Sum of the current sample."""
        self.allowed = 0.0
        """The largest total that does not exceed the bound, whatever the exact time is."""
        self.last_ms = 0
        """Time of the last value."""
        self.plain_until_ms = 0
        """From this time on the current sample has ended, or another one has expired."""


def _compiled() -> type[PythonTally]:
    from barnabas.broker.quotas.kernels._tally import Tally

    return Tally


Tally: type[PythonTally] = load_compiled(_compiled) or PythonTally
