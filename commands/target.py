"""Where a security command works: on a running broker, or in the directories of a stopped one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.commands.options import bootstrap_option, timeout_option
from barnabas.commands.stopped_broker import Directories, change_stored, directory_options, stored_image

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.plan import Plan
    from barnabas.protocol.wire.structures import Request

Command = TypeVar("Command", bound=Callable[..., Any])


class Change(NamedTuple):
    """One change, as a request to a running broker and as a plan for stored metadata."""

    request: Request[Any]
    plan: Callable[[MetadataImage], Plan[Any]]


class Target(NamedTuple):
    """A running broker, or the directories of a stopped one if any are named."""

    directories: Directories
    bootstrap: str
    timeout_s: float

    def ask(self, *requests: Request[Any]) -> list[Any]:
        """Send requests to the running broker, as `kafka_session.ask`."""
        from barnabas.commands.kafka_session import ask

        return ask(self.bootstrap, self.timeout_s, *requests)

    def stored(self) -> MetadataImage:
        """Return the image in the directories, as `stopped_broker.stored_image`."""
        return stored_image(self.directories)

    def change(self, changes: Sequence[Change]) -> list[list[Any]]:
        """Make changes in order; return the results of each, the answer's `results`.

        Raises CommandFailure, BrokerError, OSError, TimeoutError and the client's errors.
        """
        if self.directories:
            return [change_stored(self.directories, change.plan) for change in changes]
        return [answer.results for answer in self.ask(*(change.request for change in changes))]


def target_options(command: Command) -> Command:
    """`--log-dir`, `--config`, `--bootstrap` and `--timeout`, as one argument `target`."""

    @wraps(command)
    def with_target(
        *, log_dirs: tuple[Path, ...], config_file: Path | None, bootstrap: str, timeout_s: float, **given: Any
    ) -> Any:
        return command(target=Target(Directories(log_dirs, config_file), bootstrap, timeout_s), **given)

    options: Any = directory_options(bootstrap_option(timeout_option(with_target)))
    return options  # type: ignore[no-any-return]
