"""Files of an archive: paths of rows, and commits that are interrupted or repeated, which add no row twice."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.pipeline.archive.files import OPEN_FILES, ArchivedFile, ArchiveFileWriter
from barnabas.pipeline.archive.manifest import ArchiveState
from barnabas.pipeline.errors import PipelineError

START = datetime(2024, 2, 29, 23, 0, tzinfo=UTC)


def rows(topic: str, partition: int, offsets: range, hours: list[int]) -> pa.RecordBatch:
    """Return a row per offset, `hours[i]` hours after START."""
    moments = [START + timedelta(hours=hour) for hour in hours]
    return pa.record_batch(
        {
            "value": [b"%d" % offset for offset in offsets],
            "topic": [topic] * len(offsets),
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "offset": pa.array(list(offsets), pa.int64()),
            "timestamp": pa.array(moments, pa.timestamp("us", "UTC")),
            "date": pa.array([moment.date() for moment in moments], pa.date32()),
            "hour": pa.array([moment.hour for moment in moments], pa.int32()),
        }
    )


def write(state: ArchiveState, batch_id: int, *batches: pa.RecordBatch, owner: str = "0-a") -> list[ArchivedFile]:
    writer = ArchiveFileWriter(state.file_system, state.root, state.temporary_directory(batch_id, owner))
    for batch in batches:
        writer.write(batch)
    return writer.finish()


def archived(root: Path) -> dict[str, list[int]]:
    """Return the offsets in each file found by listing the directory."""
    return {
        str(path.relative_to(root)): pq.read_table(path, partitioning=None).column("offset").to_pylist()
        for path in sorted(root.rglob("*.parquet"))
        if "_barnabas" not in path.parts
    }


def test_rows_lie_by_topic_date_and_hour_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    files = write(
        state, 0, rows("orders", 1, range(10, 16), [0, 1, 0, 1, 1, 0]), rows("orders", 1, range(16, 18), [1, 1])
    )
    assert archived(tmp_path) == {}
    state.commit(0, "q", files)
    assert archived(tmp_path) == {
        f"orders/date=2024-02-29/hour=23/orders-1-{10:020d}-{15:020d}.parquet": [10, 12, 15],
        f"orders/date=2024-03-01/hour=00/orders-1-{11:020d}-{17:020d}.parquet": [11, 13, 14, 16, 17],
    }
    table = pq.read_table(tmp_path / files[0].final, partitioning=None)
    assert table.column_names == ["value", "topic", "partition", "offset", "timestamp"]
    assert [file.records for file in state.files(0)] == [3, 5]
    assert all(file.size_bytes == (tmp_path / file.final).stat().st_size for file in state.files(0))


def test_more_hours_than_files_may_be_open_lose_nothing(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    hours = [*range(OPEN_FILES + 9), *range(OPEN_FILES + 9)]
    state.commit(0, "q", write(state, 0, *(rows("t", 0, range(n, n + 1), [hour]) for n, hour in enumerate(hours))))
    assert sorted(offset for offsets in archived(tmp_path).values() for offset in offsets) == list(range(len(hours)))


def test_a_micro_batch_that_comes_again_after_its_commit_adds_nothing(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    state.commit(0, "q", write(state, 0, rows("t", 0, range(5), [0] * 5)))
    before = archived(tmp_path)
    again = write(state, 0, rows("t", 0, range(3), [0] * 3), owner="0-b")  # split differently this time
    assert state.commit(0, "q", again) == state.files(0)
    assert archived(tmp_path) == before
    assert not list(tmp_path.rglob("temporary/*"))


def test_a_commit_that_is_cut_short_between_manifest_and_files_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = ArchiveState(str(tmp_path))
    files = write(state, 0, rows("t", 0, range(6), [0, 1, 2, 0, 1, 2]))
    with monkeypatch.context() as crash:
        crash.setattr(ArchiveState, "finish", lambda state, files: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            state.commit(0, "q", files)
    assert archived(tmp_path) == {}
    after = ArchiveState(str(tmp_path))
    assert after.is_committed(0, "q")
    after.finish(after.files(0)[:1])
    after.finish(after.files(0))
    after.commit(0, "q", [])
    assert sorted(offset for offsets in archived(tmp_path).values() for offset in offsets) == list(range(6))


def test_a_file_of_another_topic_of_the_name_is_not_taken_for_the_one_that_is_to_be_moved(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    (old,) = state.commit(0, "q", write(state, 0, rows("t", 0, range(4), [0] * 4)))
    files = write(state, 1, rows("t", 0, range(4), [0] * 4))  # the topic was created again and reuses these offsets
    with pytest.raises(PipelineError, match="already exists, from another topic named 't'"):
        state.commit(1, "q", files)
    (tmp_path / old.final).rename(tmp_path / "elsewhere")
    state.finish(state.files(1))
    assert archived(tmp_path) == {old.final: [0, 1, 2, 3]}


def test_what_was_never_committed_goes_with_the_next_commit(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    write(state, 0, rows("t", 0, range(4), [0] * 4), owner="0-dead")
    state.commit(0, "q", write(state, 0, rows("t", 0, range(4), [0] * 4), owner="0-alive"))
    assert list(archived(tmp_path).values()) == [[0, 1, 2, 3]]
    assert not list(tmp_path.rglob("temporary/*"))


def test_another_querys_micro_batch_is_refused(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    state.commit(0, "first", write(state, 0, rows("t", 0, range(4), [0] * 4)))
    with pytest.raises(PipelineError, match="was archived by query first, this is second"):
        state.is_committed(0, "second")


def test_a_file_that_is_lost_and_a_manifest_that_is_broken_are_named(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    (file,) = state.commit(0, "q", write(state, 0, rows("t", 0, range(4), [0] * 4)))
    (tmp_path / file.final).unlink()
    with pytest.raises(PipelineError, match=r"orders|t-0-.*parquet is listed in a manifest but missing"):
        state.finish(state.files(0))
    (manifest,) = tmp_path.rglob("manifests/*.json")
    manifest.write_text('{"version": 1, "query": "q"')
    with pytest.raises(PipelineError, match=r"manifest 0000000000\.json cannot be read"):
        state.files(0)
    manifest.write_text('{"version": 2, "query": "q", "files": []}')
    with pytest.raises(PipelineError, match="has version 2, not 1"):
        state.files(0)


def test_a_day_is_a_date_and_no_time(tmp_path: Path) -> None:
    state = ArchiveState(str(tmp_path))
    batch = rows("t", 0, range(1), [0])
    assert batch.column("date")[0].as_py() == date(2024, 2, 29)
    (file,) = write(state, 0, batch)
    assert "/date=2024-02-29/hour=23/" in file.final


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (2_932_896, "9999-12-31"),
        (2_932_897, "10000-01-01"),
        (106_751_991, "294247-01-10"),  # the largest time in 64-bit microseconds, as when nanoseconds were sent
        (-1, "1969-12-31"),
        (-719_163, "0000-12-31"),
    ],
)
def test_a_record_of_a_far_year_has_its_directory_too(tmp_path: Path, days: int, text: str) -> None:
    state = ArchiveState(str(tmp_path))
    batch = rows("t", 0, range(2), [0, 0])
    dates = pa.array([days, days + 1], pa.int32()).cast(pa.date32())
    (file, _) = write(state, 0, batch.set_column(batch.schema.get_field_index("date"), "date", dates))
    assert f"/date={text}/hour=23/" in file.final
