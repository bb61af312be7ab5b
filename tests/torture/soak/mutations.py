"""Faults put into the code of a broker, which the soak must find."""

from __future__ import annotations

from typing import NamedTuple

_SESSIONS = """
import os
from barnabas.broker.network.session import Session
real = Session.connected
def connected(self, transport):
    os.pipe()
    real(self, transport)
Session.connected = connected
"""

_ABORTED = """
from barnabas.broker.handlers.data import fetch
fetch._aborted = lambda *_: []
"""

_STABLE = """
from barnabas.broker.storage.log.readable_log import ReadableLog
ReadableLog.last_stable_offset = property(lambda self: self.core.high_watermark)
"""

_OFFSETS = """
from barnabas.broker.groups.offsets.committed import CommittedOffsets
CommittedOffsets.adopt = lambda *_: None
"""


class Mutation(NamedTuple):
    """Code that runs in the broker before it starts, and what the soak must find: kinds of anomalies, or a measure."""

    code: str
    found: frozenset[str]
    mean_pause: float = 2
    """Between faults. A leak needs a life of some seconds."""


MUTATIONS = {
    "two descriptors of each connection leak": Mutation(_SESSIONS, frozenset({"sockets and pipes"}), mean_pause=60),
    "readers are not told about aborted transactions": Mutation(_ABORTED, frozenset({"aborted read"})),
    "read_committed readers get records of open transactions": Mutation(_STABLE, frozenset({"aborted read"})),
    "a start does not load committed offsets": Mutation(_OFFSETS, frozenset({"offset went back"})),
}
