"""Segments in an object store, read with pyarrow from moto's S3 server, if that is installed.

`pip install 'moto[server]'` puts `moto_server` on the PATH; BARNABAS_MOTO_SERVER is the path of another one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from barnabas.pipeline.errors import DataLossError, SourceError
from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.source.batch import make_batch_reader
from tests.support.storage.bench import START_MS
from tests.support.storage.segments import write_log

MOTO_SERVER = os.environ.get("BARNABAS_MOTO_SERVER") or shutil.which("moto_server")
pytestmark = pytest.mark.skipif(MOTO_SERVER is None, reason="no moto_server on the PATH: nothing here speaks S3")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server on a free port, which it prints; return `http://127.0.0.1:<port>`."""
    assert MOTO_SERVER is not None
    log = tmp_path_factory.mktemp("moto") / "log"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        [MOTO_SERVER, "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if (found := re.search(r"Running on (http://127\.0\.0\.1:\d+)", line)) is not None:
                break
        else:
            raise RuntimeError(f"moto_server ended: {''.join(said)}")
        with log.open("w") as rest:  # it prints a line per request, and would block on a full pipe
            drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=rest)
        process.stderr.close()
        yield found[1]
    finally:
        process.terminate()
        process.wait()
    drain.wait()


@pytest.fixture
def store(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fs.S3FileSystem]:
    """Create a bucket `logs` with a partition of 50 records below `data`; access is open again afterwards."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    bench, log = write_log(tmp_path, [[(START_MS + each, b"k", b"v")] for each in range(50)], segment_bytes=1500)
    bench.close(log)
    store = fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True)
    store.create_dir("logs")
    fs.copy_files(str(bench.directory), f"logs/data/{bench.directory.name}", destination_filesystem=store)
    yield store
    _check_rights_after(endpoint, 1_000_000)


def test_a_bucket_is_read_as_a_data_directory_by_an_address_from_the_environment(store: fs.S3FileSystem) -> None:
    assert _offsets("s3://logs/data") == list(range(50))


def test_the_address_of_the_store_may_stand_in_the_path(
    store: fs.S3FileSystem, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    host = endpoint.removeprefix("http://")

    assert _offsets(f"s3://logs/data?scheme=http&endpoint_override={host}") == list(range(50))


def test_a_missing_bucket_is_named_with_its_scheme(store: fs.S3FileSystem) -> None:
    with pytest.raises(SourceError, match=r"no such file, directory or bucket: s3://nowhere/data$"):
        _offsets("s3://nowhere/data")


def test_missing_rights_point_to_the_credentials(store: fs.S3FileSystem, endpoint: str) -> None:
    _check_rights_after(endpoint, 0)

    with pytest.raises(SourceError, match=r"^s3://logs/data: .*; look at the credentials and their rights$"):
        _offsets("s3://logs/data")


def test_a_segment_that_goes_between_plan_and_read_is_data_loss(store: fs.S3FileSystem) -> None:
    reader = make_batch_reader({"path": "s3://logs/data"}, source_schema(include_headers=False))
    parts = reader.partitions()
    files = store.get_file_info(fs.FileSelector("logs/data", recursive=True))
    gone = next(each for each in files if each.extension == "log")
    store.delete_file(gone.path)

    with pytest.raises(DataLossError, match=f"{gone.path}.*read from s3://logs/data"):
        [batch for part in parts for batch in reader.read(part)]


def test_hadoops_name_for_the_scheme_is_refused_with_the_right_one() -> None:
    with pytest.raises(SourceError, match=r"write s3://"):
        _offsets("s3a://logs/data")


def _offsets(path: str) -> list[int]:
    reader = make_batch_reader({"path": path}, source_schema(include_headers=False))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    offsets: list[int] = pa.Table.from_batches(batches).column("offset").to_pylist()
    return offsets


def _check_rights_after(endpoint: str, requests: int) -> None:
    """Make the server accept this many requests, then check users and policies, of which it has none."""
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", str(requests).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as response:
        response.read()
