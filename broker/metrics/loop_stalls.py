"""Finds out what keeps the event loop from its next callback: stalls by their cause, and a log line for long ones.

A timer fires every BUSY_SECONDS while the loop is busy, otherwise every IDLE_SECONDS. If it is late, the time since its
last run is divided by what the kernel and the garbage collector know about the loop's thread:

    gc          garbage collection, in any thread: it holds the interpreter lock
    running     the thread ran: Python code, kernels, system calls that did not block
    processor   the thread was ready to run, and other threads or processes had the processors
    blocked     the thread waited: for a disk, for the interpreter lock that another thread held, or for another lock

The largest part is the cause. A stall shorter than the timer's interval is noticed only if it covers the moment when
the timer is due, so counts of short stalls are samples; and the parts include up to one interval before that moment.

A thread looks every WATCH_SECONDS whether the timer is overdue, and takes the loop's stack and system call: the log
line of a stall above LOG_SECONDS has them.

A busy loop pays 6 to 8 us for each run of the timer, 0.04 % of a core. A loop that sleeps pays for being woken as well,
up to 90 us on a virtual machine, so it is woken rarely.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from types import FrameType

    from barnabas.broker.probes import LoopStallProbe

logger = logging.getLogger(__name__)

BUSY_SECONDS: Final = 0.02
IDLE_SECONDS: Final = 0.1
WATCH_SECONDS: Final = 0.1

BUSY_SHARE: Final = 0.3
"""Share of a processor that the loop's thread uses while it is busy."""

STALL_SECONDS: Final = 0.005
"""Shortest delay that counts. libuv's timers count whole milliseconds."""

LOG_SECONDS: Final = 0.25

_STACK_FRAMES: Final = 6
_NANOSECOND: Final = 1e-9


class StallParts(NamedTuple):
    """Seconds of a stall by cause."""

    gc: float
    running: float
    processor: float
    blocked: float

    @property
    def cause(self) -> str:
        """The largest part's name."""
        return max(zip(self, self._fields, strict=True))[1]


def divide(late: float, *, cpu: float, run_delay: float, gc_here: float, gc_elsewhere: float) -> StallParts:
    """Divide a delay of `late` seconds.

    Since the timer's last run, the loop's thread ran for `cpu` seconds, of which `gc_here` were garbage collection,
    and waited for a processor for `run_delay`. Other threads collected garbage for `gc_elsewhere`.
    """
    return StallParts(
        gc=gc_here + gc_elsewhere,
        running=max(0.0, cpu - gc_here),
        processor=run_delay,
        blocked=max(0.0, late - cpu - run_delay - gc_elsewhere),
    )


class LoopStallTimer:
    """Feeds a `LoopStallProbe` from a running loop until `stop`. Create, start and stop it in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, probe: LoopStallProbe) -> None:
        self._loop = loop
        self._probe = probe
        self._interval = IDLE_SECONDS
        self._due = 0.0
        self._cpu = 0.0
        self._run_delay = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._collections: Collections | None = None
        self._schedstat: int | None = None
        self._watcher: _Watcher | None = None

    def start(self) -> None:
        """Set the first timer and begin to watch."""
        try:
            self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            logger.debug("stalls that wait for a processor count as blocked: %s", error)
        self._collections = Collections()
        self._watcher = _Watcher(self)
        self._set(time.monotonic(), time.thread_time(), IDLE_SECONDS)
        self._watcher.thread.start()

    def stop(self) -> None:
        """Stop the timer and the watching thread. May be called without `start`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None
        if self._collections is not None:
            self._collections.stop()
            self._collections = None
        if self._schedstat is not None:
            os.close(self._schedstat)
            self._schedstat = None

    @property
    def due(self) -> float:
        """When the timer fires next, in monotonic seconds. Read by the watching thread."""
        return self._due

    def _set(self, now: float, cpu: float, interval: float) -> None:
        self._cpu = cpu
        self._interval = interval
        self._run_delay = self._read_run_delay()
        self._due = now + interval
        self._handle = self._loop.call_later(interval, self._beat)

    def _beat(self) -> None:
        now = time.monotonic()
        collections, watcher = self._collections, self._watcher
        assert collections is not None
        assert watcher is not None
        gc_here, gc_elsewhere = collections.take()
        late = now - self._due
        cpu = time.thread_time()
        used = cpu - self._cpu
        if late >= STALL_SECONDS:
            parts = divide(
                late,
                cpu=used,
                run_delay=self._read_run_delay() - self._run_delay,
                gc_here=gc_here,
                gc_elsewhere=gc_elsewhere,
            )
            self._probe.count(parts.cause, late)
            if late >= LOG_SECONDS:
                _log(late, parts, watcher.sample_after(self._due))
        is_busy = used >= BUSY_SHARE * (self._interval + late)
        self._set(now, cpu, BUSY_SECONDS if is_busy else IDLE_SECONDS)

    def _read_run_delay(self) -> float:
        """Return the seconds that the thread was ready and had no processor."""
        if self._schedstat is None:
            return 0.0
        return int(os.pread(self._schedstat, 64, 0).split()[1]) * _NANOSECOND


class Collections:
    """Garbage collection since the last `take`: CPU seconds of the creating thread, and seconds of other threads.

    Other threads' collections count with their waits for a processor, because they hold the interpreter lock meanwhile.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._started = 0.0
        self._here = 0.0
        self._elsewhere = 0.0
        gc.callbacks.append(self._collected)

    def take(self) -> tuple[float, float]:
        """Return the seconds of this thread and of others, and begin again at 0."""
        taken = self._here, self._elsewhere
        self._here = self._elsewhere = 0.0
        return taken

    def stop(self) -> None:
        """Count no more."""
        gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        is_here = threading.get_ident() == self._thread
        now = time.thread_time() if is_here else time.monotonic()
        if phase == "start":
            self._started = now
        elif is_here:
            self._here += now - self._started
        else:
            self._elsewhere += now - self._started


class _Sample(NamedTuple):
    """What the loop's thread did at a moment of a stall."""

    taken: float
    stack: str
    system_call: str


class _Watcher:
    """Samples the loop's thread while its timer is overdue."""

    def __init__(self, timer: LoopStallTimer) -> None:
        self._timer = timer
        self._ident = threading.get_ident()
        self._native_id = threading.get_native_id()
        self._stopped = threading.Event()
        self._sample: _Sample | None = None
        self.thread = threading.Thread(target=self._run, name="barnabas-stalls", daemon=True)

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self.thread.join()

    def sample_after(self, moment: float) -> _Sample | None:
        """Return the last sample, if it was taken after `moment`."""
        sample = self._sample
        return sample if sample is not None and sample.taken > moment else None

    def _run(self) -> None:
        while not self._stopped.wait(WATCH_SECONDS):
            now = time.monotonic()
            if now - self._timer.due > WATCH_SECONDS:
                stack = _stack(sys._current_frames().get(self._ident))
                self._sample = _Sample(now, stack, _system_call(self._native_id))


def _stack(frame: FrameType | None) -> str:
    """Return the innermost frames of a thread, the innermost first."""
    frames: list[str] = []
    while frame is not None and len(frames) < _STACK_FRAMES:
        module = frame.f_globals.get("__name__", "?")
        frames.append(f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(frames)


def _system_call(native_id: int) -> str:
    """Return the system call in which a thread of this process is, by number; "none" while it runs."""
    try:
        with open(f"/proc/self/task/{native_id}/syscall", encoding="ascii") as file:
            number = file.read().split()[0]
    except OSError:
        return "?"
    return "none" if number == "running" else number


def _log(late: float, parts: StallParts, sample: _Sample | None) -> None:
    stack, system_call = ("?", "?") if sample is None else (sample.stack, sample.system_call)
    logger.warning(
        "the event loop stalled, seconds=%.3f cause=%s gc=%.3f running=%.3f processor=%.3f blocked=%.3f system_call=%s"
        " stack=%s",
        late,
        parts.cause,
        parts.gc,
        parts.running,
        parts.processor,
        parts.blocked,
        system_call,
        stack,
    )
