"""Runs scripts on both brokers, and says where they differ."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from tests.interop.differential import steps
from tests.interop.differential.answers import Masks, differing
from tests.interop.differential.brokers import Side
from tests.interop.differential.directories import compare_live, compare_stopped
from tests.interop.differential.processes import SETTINGS, SETTINGS_WITH_CLEANER, BarnabasProcess, KafkaProcess

_FETCHED_AT_ONCE = 1 << 24
_READ_VERSION = 12
SETTLED_S = 15.0


@dataclass(frozen=True)
class Difference:
    """What differs, and after which step; the script is cut off there."""

    script: steps.Script
    where: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.script), f"{self.where}:", *self.lines[:20]])


class Pair:
    """Both brokers on new directories, which serve one script after the other."""

    def __init__(self, directory: Path, kernel: str | None, *, cleans: bool) -> None:
        self._runs = 0
        self._equal: dict[str, int] = {}
        """Seeds of scripts without a difference, by the prefix of their topics."""
        settings = SETTINGS_WITH_CLEANER if cleans else SETTINGS
        with ThreadPoolExecutor(2) as both:
            ours = both.submit(lambda: Side(BarnabasProcess(directory / "barnabas", settings, kernel), cleans=cleans))
            theirs = both.submit(lambda: Side(KafkaProcess(directory / "kafka", settings), cleans=cleans))
        self._sides = ours.result(), theirs.result()

    def run(self, script: steps.Script) -> Difference | None:
        """Run a script with topics of its own; return the first difference."""
        self._runs += 1
        prefix = f"r{self._runs}"
        for side in self._sides:
            side.begin(prefix)
            side.masks.has_own_clock = script.has_own_clock
            side.masks.decodes = script.has_codecs
            side.create_topics(script.topics)
        for number, step in enumerate(script.steps):
            lines = self._restart(prefix, step) if isinstance(step, steps.Restart) else self._step(step)
            if isinstance(step, steps.Clean):
                lines = lines or self._settled(prefix)
            if lines:
                cut = replace(script, steps=script.steps[: number + 1])
                return Difference(cut, f"step {number}, {step}", tuple(lines))
        lines = self._whole(script) or self._settled(prefix)
        if lines:
            return Difference(script, "at the end", tuple(lines))
        self._equal[prefix] = script.seed
        return None

    def end(self) -> list[str]:
        """Stop both cleanly; return the differences of their directories."""
        for side in self._sides:
            side.end(kill=False)
        return [line for prefix in self._equal for line in compare_stopped(self._written(prefix), prefix)]

    def kill(self) -> None:
        """End both at once."""
        for side in self._sides:
            with suppress(OSError):
                side.end(kill=True)

    def logs(self) -> str:
        """Return the ends of both logs."""
        return "\n".join(side.process.log() for side in self._sides)

    def _step(self, step: steps.Step) -> list[str]:
        ours, theirs = (side.do(step) for side in self._sides)
        lines = differing(ours, theirs)
        if lines and isinstance(step, steps.ListOffsets):
            return self._looked_up(step, ours, theirs)
        return lines

    def _looked_up(self, step: steps.ListOffsets, ours: Any, theirs: Any) -> list[str]:
        """Compare lookups by timestamp, where Barnabas goes on and Kafka does not.

        If the records that are new enough in the first segment that has some are deleted, Kafka finds none. Barnabas
        then has to find the first in all records.
        """
        for topic, other in zip(ours["topics"], theirs["topics"], strict=True):
            for place, found in enumerate(topic["partitions"]):
                number, name = found["partition_index"], topic["name"].rpartition(".")[2]
                asked = [time for each, entries in step.topics if each == name for n, time, _ in entries if n == number]
                if found["error_code"] or other["partitions"][place]["offset"] != -1 or min(asked) < 0:
                    continue
                right = {self._first_at(name, number, time) for time in asked}
                if found["offset"] in right:
                    other["partitions"][place] = found
        return differing(ours, theirs)

    def _first_at(self, topic: str, number: int, timestamp: int) -> int:
        """Find the offset of the first record at or after a time among all records of our partition."""
        return next(
            (
                record.offset
                for answer in self._all(self._sides[0], topic, number)
                for batch in iter_batches(answer["responses"][0]["partitions"][0]["records"])
                for record in read_records(batch)
                if record.timestamp >= timestamp and record.offset >= self._start(self._sides[0], topic, number)
            ),
            -1,
        )

    def _start(self, side: Side, topic: str, number: int) -> int:
        found = side.do(steps.ListOffsets(4, ((topic, ((number, -2, -1),)),), 0))
        return int(found["topics"][0]["partitions"][0]["offset"])

    def _all(self, side: Side, topic: str, number: int) -> list[Any]:
        """Return the answers to fetches of everything: one fetch ends with a segment."""
        offset, answers = self._start(side, topic, number), []
        while True:
            part = steps.FetchPart(number, max(0, offset), _FETCHED_AT_ONCE)
            answers.append(side.do(steps.Fetch(_READ_VERSION, ((topic, (part,)),), _FETCHED_AT_ONCE, 0, 0, 0)))
            records = answers[-1]["responses"][0]["partitions"][0]["records"]
            if not records:
                return answers
            *_, last = iter_batches(records)
            offset = last.next_offset

    def _restart(self, prefix: str, step: steps.Restart) -> list[str]:
        for side in self._sides:
            side.end(kill=step.kill)
        lines = [] if step.kill else compare_stopped(self._written(prefix), prefix)
        for side in self._sides:
            side.start_again()
        return lines

    def _settled(self, prefix: str) -> list[str]:
        """Compare the files; Kafka writes some of them a moment after its answer."""
        deadline = time.monotonic() + SETTLED_S
        while True:
            try:
                lines = compare_live(self._written(prefix), prefix)
            except FileNotFoundError as error:  # a file that was renamed into its place
                lines = [str(error)]
            if not lines or time.monotonic() > deadline:
                return lines
            time.sleep(0.02)  # polling other processes with a deadline

    def _whole(self, script: steps.Script) -> list[str]:
        """Read every partition from its start, and compare."""
        counts = {name: count for name, (count, _) in script.topics.items()}
        counts.pop(steps.LOOSE_TOPIC, None)
        counts |= {step.topic: step.partitions for step in script.steps if isinstance(step, steps.Recreate)}
        for name, count in counts.items():
            for number in range(count):
                ours, theirs = (self._all(side, name, number) for side in self._sides)
                lines = differing(ours, theirs)
                if lines:
                    return [f"all of {name}-{number}", *lines]
        return []

    def _written(self, prefix: str) -> list[tuple[Path, Masks]]:
        return [(side.process.data, side.all_masks[prefix]) for side in self._sides]


@contextmanager
def running_pair(directory: Path, kernel: str | None = None, *, cleans: bool = False) -> Iterator[Pair]:
    """Run both brokers; kill them at the end unless they were stopped. `kernel`: see BarnabasProcess.

    `cleans`: with cleaners, for scripts that are drawn with one.
    """
    pair = Pair(directory, kernel, cleans=cleans)
    try:
        yield pair
    finally:
        pair.kill()
