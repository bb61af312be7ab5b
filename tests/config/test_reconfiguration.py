"""Changes of a running broker that are too large for one step."""

from __future__ import annotations

import pytest

from barnabas.config import ConfigError, ensure_reconfigurable
from tests.support.storage.bench import broker_config


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 2), (2, 1), (4, 8), (5, 2), (5, 10)])
def test_cleaner_threads_may_be_halved_and_doubled(before: int, after: int) -> None:
    ensure_reconfigurable(broker_config(log_cleaner_threads=before), broker_config(log_cleaner_threads=after))


@pytest.mark.parametrize(
    ("before", "after", "says"), [(1, 3, "increased to more than double"), (4, 1, "less than half")]
)
def test_larger_changes_are_refused_with_the_current_value(before: int, after: int, says: str) -> None:
    with pytest.raises(ConfigError, match=f"log.cleaner.threads={after} .*{says} the current value {before}"):
        ensure_reconfigurable(broker_config(log_cleaner_threads=before), broker_config(log_cleaner_threads=after))
