"""Faults put into the code of a broker, which the soak must find."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.torture.soak.faults import CHANCES, CUT, KILL

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


_UNWRITTEN = """
import itertools
from barnabas.broker.storage.log.append import AppendOrigin, AppendResult
from barnabas.broker.storage.log.appending.appender import LogAppender
real, count = LogAppender.append_as_leader, itertools.count(1)
def append_as_leader(self, records, *, leader_epoch, origin=AppendOrigin.CLIENT, checked=None):
    if origin is not AppendOrigin.CLIENT or next(count) % 40:
        return real(self, records, leader_epoch=leader_epoch, origin=origin, checked=checked)
    core = self._core
    batch = checked or self._rules.check(records, core.wall_ms(), 1 << 30)
    with core.lock:
        last = core.log_end_offset + batch[2]
        if core.producers.check_batch(batch[5], batch[6], batch[7], batch[2]) is None:
            core.producers.note_batch(batch[5], batch[6], batch[7], last, batch[2], batch[4])
    return AppendResult(core.log_end_offset, last, -1, core.log_start_offset, len(records), batch[3], False)
LogAppender.append_as_leader = append_as_leader
"""

_RECOVERY = """
from barnabas.broker.storage.log.loading import loader
from barnabas.broker.storage.segment.scan import iter_headers
real = loader.recover_segment
def recover_segment(segment, state, epochs, *, next_base_offset):
    if next_base_offset is None and "/plain-" in str(segment.log.path):
        segment.log.activate()
        *_, (position, _) = [(0, None), *iter_headers(segment.log.handle(), 0, segment.size_bytes)]
        segment.log.truncate_to(position)
    return real(segment, state, epochs, next_base_offset=next_base_offset)
loader.recover_segment = recover_segment
"""

_DUPLICATES = """
from barnabas.broker.storage.producers.state import ProducerState
real = ProducerState.check_batch
def check_batch(*arguments, **options):
    real(*arguments, **options)
ProducerState.check_batch = check_batch
"""

_SKIPS = """
import itertools
from barnabas.broker.storage.log.reader import LogReader
from barnabas.protocol.records.batch import RecordBatch
real, count = LogReader.read, itertools.count(1)
def read(self, offset, max_bytes, *, upper_bound, at_least_one_batch):
    limits = {"upper_bound": upper_bound, "at_least_one_batch": at_least_one_batch}
    found = real(self, offset, max_bytes, **limits)
    if found is None or next(count) % 20:
        return found
    after = RecordBatch(found.read()).last_offset + 1
    return real(self, after, max_bytes, **limits) or found
LogReader.read = read
"""

_TRANSACTIONAL_OFFSETS = """
from barnabas.broker.groups.offsets.pending import PendingOffsets
real = PendingOffsets.end
PendingOffsets.end = lambda self, transaction, *, is_commit: real(self, transaction, is_commit=False)
"""

_TIMEOUTS = """
from barnabas.broker.transactions import transitions
transitions.has_timed_out = lambda *_: False
"""

_UNAPPLIED = """
import itertools
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.partition.served import ServedSharePartition
real, count = ServedSharePartition.acknowledge, itertools.count(1)
def acknowledge(self, member_id, acknowledgements):
    if next(count) % 10:
        return real(self, member_id, acknowledgements)
    answer = Deferred()
    answer.resolve(None)
    return answer
ServedSharePartition.acknowledge = acknowledge
"""

_UNSTORED = """
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.partition.served import ServedSharePartition
def _send(self, batches):
    answer = Deferred()
    answer.resolve(None)
    return answer
ServedSharePartition._send = _send
"""

_RELEASES = """
from barnabas.broker.share.partition.in_flight import InFlightState
real = InFlightState.end
InFlightState.end = lambda self, state, count_limit: real(self, state, 0)
"""

_LOCKS = """
from barnabas.broker.share.partition.in_flight import InFlightState, RecordState
from barnabas.broker.share.partition.share_partition import SharePartition
held = (RecordState.AVAILABLE, RecordState.ACQUIRED)
InFlightState.is_free = property(lambda self: self.state in held and self._before is None)
SharePartition._ensure_acquired = staticmethod(lambda *_: None)
"""

_DELETION = """
from barnabas.broker.groups.offsets import service
real = service.GroupOffsets.remove_group
def remove_group(self, group_id):
    if self._registry.get(group_id) is not None:
        return real(self, group_id)
    self.committed.forget([group_id])
    return service._done()
service.GroupOffsets.remove_group = remove_group
"""

_MIRROR = """
import itertools
from barnabas.broker.storage.log.appending.follower import FollowerAppender
from barnabas.protocol.records.batch import RecordBatch
real, count = FollowerAppender.append_as_follower, itertools.count(1)
def append_as_follower(self, records):
    first = RecordBatch(records)
    if len(records) == first.size_bytes or next(count) % 5:
        return real(self, records)
    return real(self, records[first.size_bytes:])
FollowerAppender.append_as_follower = append_as_follower
"""

_PROMOTION = """
from barnabas.broker.mirrors.promotion import promotion
real = promotion.settle_log
def settle_log(log, copied, planned, commits, leader_epoch):
    end = max(log.log_start_offset, planned.copied_end - 1)
    return real(log, copied, planned._replace(copied_end=end), commits, leader_epoch)
promotion.settle_log = settle_log
"""

_FOLLOWED = """
from barnabas.broker.mirrors.following import group_follower
real = group_follower.clamped
def clamped(offsets, end_of):
    return {key: each for key, each in real(offsets, end_of).items() if key.partition}
group_follower.clamped = clamped
"""

_PYTHON = {"BARNABAS_KERNEL": "python"}


class Mutation(NamedTuple):
    """Code that runs in a broker before it starts, and what the soak must find: kinds of anomalies, or a measure."""

    code: str
    found: frozenset[str]
    mean_pause: float = 1.5
    """Between faults. A leak needs a life of some seconds."""
    faults: Mapping[str, int] = MappingProxyType(CHANCES)
    """Weights of kinds: of those that bring the fault of the code to light, there must be enough."""
    environ: Mapping[str, str] = MappingProxyType({})
    """Where the compiled kernels do the work of the code that is replaced, Python has to do it."""
    is_of_mirror: bool = False
    """Whether the code runs in the mirror's broker instead of the other one."""


MUTATIONS = {
    "two descriptors of each connection leak": Mutation(_SESSIONS, frozenset({"sockets and pipes"}), mean_pause=60),
    "readers are not told about aborted transactions": Mutation(_ABORTED, frozenset({"aborted read"})),
    "read_committed readers get records of open transactions": Mutation(_STABLE, frozenset({"aborted read"})),
    "a start does not load committed offsets": Mutation(_OFFSETS, frozenset({"offset went back"})),
    "one batch of forty is acknowledged and not written": Mutation(
        _UNWRITTEN, frozenset({"lost write"}), environ=_PYTHON
    ),
    "recovery cuts a good batch off": Mutation(_RECOVERY, frozenset({"lost write"}), faults={KILL: 1}),
    "repeated batches are stored again": Mutation(
        _DUPLICATES, frozenset({"duplicate"}), faults={CUT: 1}, environ=_PYTHON
    ),
    "one fetch of twenty skips a batch": Mutation(_SKIPS, frozenset({"skipped poll"}), environ=_PYTHON),
    "offsets in transactions are not committed": Mutation(_TRANSACTIONAL_OFFSETS, frozenset({"offset went back"})),
    "transactions do not time out": Mutation(_TIMEOUTS, frozenset({"no end"})),
    "one acknowledgement of a share group of ten is not applied": Mutation(
        _UNAPPLIED, frozenset({"delivery after its end"})
    ),
    "acknowledgements of share groups are not stored": Mutation(
        _UNSTORED, frozenset({"delivery after its end"}), faults={KILL: 1}
    ),
    "records that a share group releases are archived": Mutation(_RELEASES, frozenset({"lost delivery"})),
    "a record of a share group goes to two members": Mutation(_LOCKS, frozenset({"two holders"})),
    "deletions of groups are not written": Mutation(_DELETION, frozenset({"deleted group"}), faults={KILL: 1}),
    "a mirror passes over a batch": Mutation(_MIRROR, frozenset({"differing copy"}), is_of_mirror=True),
    "a promotion cuts the last batch off": Mutation(_PROMOTION, frozenset({"differing copy"}), is_of_mirror=True),
    "a mirror follows the groups of some partitions": Mutation(
        _FOLLOWED, frozenset({"differing copy"}), is_of_mirror=True
    ),
}
