"""`barnabas explain start`: what the last start did, or what the next one would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option
from barnabas.commands.output import print_json, print_line
from barnabas.commands.stopped_broker import Directories, directories_config, directory_options

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.protocol.messages.cluster.explain_start import ExplainStartResponse


@click.command()
@directory_options
@json_option
@bootstrap_option
@timeout_option
def start(
    log_dirs: tuple[Path, ...], config_file: Path | None, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Explain what the broker's last start did, and why the stop before it counted as unclean.

    With --log-dir or --config: what a start would do on the directories of a stopped broker, Barnabas' or Apache
    Kafka's, which are only read.
    """
    from barnabas.commands.session import with_admin
    from barnabas.explanation.start import json_of, sentences_of

    directories = Directories(log_dirs, config_file)
    if directories:
        from barnabas.commands.explain.start.stored_start import read_stored_start

        explained = read_stored_start(directories_config(directories).log_dirs)
    else:

        async def work(admin: Admin) -> ExplainStartResponse:
            return await admin.explain_start()

        explained = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(json_of(explained, is_next=bool(directories)))
        return
    for sentence in sentences_of(explained, is_next=bool(directories)):
        print_line(sentence)
