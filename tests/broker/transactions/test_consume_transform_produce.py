"""A consume-transform-produce loop under faults of its processes and of the broker: each record exactly once.

`tests/interop/transactions/test_transformers.py` has more faults, our own client, and groups of the consumer protocol.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.support.daemon import start_daemon
from tests.support.transactions.transformers import SETTINGS, Transformation


def test_each_record_is_transformed_exactly_once_though_broker_and_processes_are_killed_or_suspended(
    tmp_path: Path,
) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon, ExitStack() as stack:
        Transformation(daemon, "confluent", seed=1, stack=stack).run(faults=3)
