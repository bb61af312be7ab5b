"""Consume-transform-produce loops whose processes and broker are killed: each record is written exactly once."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
from tests.support.transactions.transformers import SETTINGS, Transformation


@pytest.mark.parametrize(("library", "seed"), [("confluent", 1), ("barnabas", 2)])
def test_each_record_is_transformed_exactly_once_though_processes_and_broker_are_killed(
    tmp_path: Path, library: str, seed: int
) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon, ExitStack() as stack:
        Transformation(daemon, library, seed=seed, stack=stack).run(kills=4)
