"""The metadata of a stopped broker's directories: read it, or change it under the lock that a broker holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from barnabas.commands.failures import CommandFailure
from barnabas.commands.output import print_note
from barnabas.protocol.errors import BrokerError

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.plan import Plan
    from barnabas.config import BrokerConfig

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., object])

_ORIGIN = "the command line"


class Directories(NamedTuple):
    """`--log-dir` and `--config` of a command. Without either, the command is for a running broker."""

    log_dirs: tuple[Path, ...]
    config_file: Path | None

    def __bool__(self) -> bool:
        return bool(self.log_dirs) or self.config_file is not None


def directory_options(command: Command) -> Command:
    """`--log-dir DIR` (repeatable) and `--config FILE`: `log_dirs` and `config_file`."""
    with_config = click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="As --log-dir, with the directories of a server.properties.",
    )(command)
    return click.option(
        "--log-dir",
        "log_dirs",
        type=click.Path(file_okay=False, path_type=Path),
        multiple=True,
        metavar="DIR",
        help="Directories of a stopped broker, instead of --bootstrap; the one with the metadata log first.",
    )(with_config)


def stored_image(directories: Directories) -> MetadataImage:
    """Return the image in the directories; nothing is written or locked. Raises CommandFailure, OSError.

    If a broker may be running there, a note on standard error says so.
    """
    from barnabas.broker.metadata.directories.examine import examine
    from barnabas.broker.metadata.directories.security import stored_image as image_of
    from barnabas.broker.storage.directories.lock import LOCK_FILE

    config = directories_config(directories)
    for log_dir in config.log_dirs:
        if (log_dir / LOCK_FILE).exists():  # a clean stop removes it; testing the lock could refuse a broker's start
            print_note(
                f"{log_dir} has a .lock file: a broker is running there, and --bootstrap HOST:PORT shows its "
                "current state, or the last one was killed"
            )
    report = examine(config.log_dirs, metadata_log_dir=config.metadata_log_dir, ignore_security=True)
    if report.replayed is None:
        raise CommandFailure("; ".join(f"{problem.sentence}: {problem.remedy}" for problem in report.problems))
    return image_of(report.replayed, report.bootstrap)


def change_stored(directories: Directories, plan: Callable[[MetadataImage], Plan[Result]]) -> list[Result]:
    """Commit a plan to the directories of a stopped broker, which are created if missing; return its results.

    Raises CommandFailure, also while a broker runs on them.
    """
    from barnabas.broker.metadata.errors import MetadataError
    from barnabas.broker.metadata.store import open_metadata
    from barnabas.broker.storage.directories.lock import LockedDirectoryError
    from barnabas.broker.storage.files.errors import StorageError
    from barnabas.broker.storage.log_manager import LogManager
    from barnabas.broker.storage.services.clock import SystemClock

    config = directories_config(directories)
    manager = LogManager(config)
    try:
        manager.open_directories()
        return open_metadata(config, manager, SystemClock()).change(plan)
    except LockedDirectoryError as error:
        raise CommandFailure(
            f"{error.path}: a broker is running on this data directory, or starting: leave out --log-dir and --config, "
            "and name the broker with --bootstrap HOST:PORT; or stop it first"
        ) from error
    except (MetadataError, StorageError, BrokerError) as error:
        raise CommandFailure(str(error)) from error
    finally:
        manager.shutdown()  # the logs were not loaded: markers and checkpoints stay as they are


def directories_config(directories: Directories) -> BrokerConfig:
    """Return a configuration of the directories alone. Raises CommandFailure."""
    from barnabas.config import BrokerConfig
    from barnabas.config.loader import ConfigError, load
    from barnabas.config.value import Setting

    settings = {"ignore.security": "true"}
    if directories.config_file is not None:
        try:
            served = load(config_file=directories.config_file, environ=os.environ)
        except ConfigError as error:
            raise CommandFailure(str(error)) from error
        settings["log.dirs"] = ",".join(map(str, served.log_dirs))
        settings["metadata.log.dir"] = str(served.metadata_log_dir)
        settings["initial.features"] = ",".join(served.get_list("initial.features"))
        if served.node_id is not None:
            settings["node.id"] = str(served.node_id)
    if directories.log_dirs:
        settings["log.dirs"] = ",".join(map(str, directories.log_dirs))
    return BrokerConfig.of({name: Setting(text, _ORIGIN) for name, text in settings.items()})


def stored_broker_config(directories: Directories, image: MetadataImage) -> BrokerConfig:
    """Return the configuration with which the broker would start: its file, the environment, and the metadata log.

    Raises CommandFailure.
    """
    from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
    from barnabas.broker.metadata.errors import MetadataError
    from barnabas.config.loader import ConfigError, load

    overrides = ["ignore.security=true"]
    if directories.log_dirs:
        overrides.append(f"log.dirs={','.join(map(str, directories.log_dirs))}")
    try:
        static = load(config_file=directories.config_file, environ=os.environ, overrides=overrides)
        node_id = static.node_id
        if node_id is None:
            found = read_meta_properties(static.log_dirs[0])
            node_id = None if found is None else found.node_id
    except (ConfigError, MetadataError) as error:
        raise CommandFailure(str(error)) from error
    own = {} if node_id is None else image.broker_configs(node_id)
    return static.with_dynamic(image.default_broker_configs(), own, stored=True)
