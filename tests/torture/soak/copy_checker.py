"""The anomaly of copies.

differing copy          a mirror has other records or committed offsets than its source, or a promotion changed them
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tests.torture.soak.checker import Anomaly
from tests.torture.soak.history import Final, Place, StoredRecord


def find_differences(
    final: Final,
    copied: Mapping[Place, Sequence[StoredRecord]],
    starts: Mapping[Place, int],
    *,
    compacted: Iterable[str] = (),
    trimmed: Iterable[str] = (),
) -> Iterator[Anomaly]:
    """Compare a mirror, which has copied everything, with its source, record for record.

    Either side compacts for itself, so of `compacted` topics the last value of each key is compared; of `trimmed` ones
    what retention has left on both sides. `starts` are the log start offsets of the mirror.
    """
    for place, records in final.records.items():
        expected: Collection[object] = records
        found: Collection[object] = copied.get(place, ())
        if place[0] in compacted:
            expected = {key: value for _, key, value in records}.items()
            found = {key: value for _, key, value in copied.get(place, ())}.items()
        elif place[0] in trimmed:
            start = max(final.starts.get(place, 0), starts.get(place, 0))
            expected = [each for each in records if each[0] >= start]
            found = [each for each in copied.get(place, ()) if each[0] >= start]
        there, here = set(expected), set(found)
        missing = [each for each in expected if each not in here]
        extra = [each for each in found if each not in there]
        if missing or extra:
            yield Anomaly(
                "differing copy", f"{place} lacks {len(missing)}, {missing[:3]}, has {len(extra)}, {extra[:3]}"
            )
        elif list(expected) != list(found) and place[0] not in compacted:
            yield Anomaly("differing copy", f"{place} has records twice, or in another order")
