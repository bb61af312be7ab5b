"""Session settings of the jobs where Spark's defaults do not suit a single machine."""

from __future__ import annotations

import os

import pytest

from barnabas.pipeline.spark.session import local_tasks


@pytest.mark.parametrize(
    ("master", "tasks"),
    [("local", 8), ("local[1]", 8), ("local[2]", 8), ("local[16]", 64), ("local[4,3]", 16), ("local[4, 3]", 16)],
)
def test_work_on_one_machine_is_shared_by_four_tasks_a_thread(master: str, tasks: int) -> None:
    assert local_tasks(master) == tasks


def test_all_cores_of_the_machine_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert local_tasks("local[*]") == 48


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]", ""])
def test_a_cluster_keeps_what_its_own_configuration_says(master: str) -> None:
    assert local_tasks(master) is None
