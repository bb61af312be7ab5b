"""The report of `barnabas doctor client`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.commands.doctor.steps import Step


@dataclass(slots=True)
class Report:
    """`steps` succeeded; each of `problems` is a sentence, with the remedy if that is known."""

    bootstrap: str
    security_protocol: str
    is_connected: bool = False
    cluster_id: str | None = None
    brokers: list[dict[str, Any]] = field(default_factory=list)
    operations: dict[str, Any] = field(default_factory=dict)
    """Authorized operations on the `cluster`, by topic and by group; empty if the broker does not report them."""
    steps: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    step: Step = Step.LOOK_UP
    """The step that is being tried."""
    failed_step: Step | None = None
    """The step of the first problem."""

    def add_problem(self, sentence: str, step: Step | None = None) -> None:
        """Add a problem of `step`, which is the current one by default."""
        self.problems.append(sentence)
        if self.failed_step is None:
            self.failed_step = step or self.step

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "bootstrap": self.bootstrap,
            "security_protocol": self.security_protocol,
            "cluster_id": self.cluster_id,
            "brokers": self.brokers,
            "operations": self.operations,
            "steps": self.steps,
            "failed_step": self.failed_step,
            "problems": self.problems,
        }
