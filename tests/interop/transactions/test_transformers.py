"""Consume-transform-produce loops over many faults of their processes and of the broker: exactly once, by counting."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
from tests.support.transactions.transformers import SETTINGS, Transformation

FAULTS = 8


@pytest.mark.parametrize(("library", "seed"), [("confluent", 21), ("confluent-consumer", 22), ("barnabas", 23)])
def test_each_record_is_transformed_exactly_once_over_many_faults(tmp_path: Path, library: str, seed: int) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon, ExitStack() as stack:
        Transformation(daemon, library, seed=seed, stack=stack).run(faults=FAULTS)
