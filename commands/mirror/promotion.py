"""`barnabas mirror promote`: topics of a mirror become ordinary topics of this cluster."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription

_POLL_SECONDS = 0.1
_PART_OF_TIMEOUT = 0.9
"""So that this command ends with its own message."""

_PROMOTING = "promoting"


@click.command()
@click.argument("name")
@click.option(
    "--topics",
    "topics",
    multiple=True,
    metavar="PATTERN",
    help="Promote only these topics of the mirror: a regular expression that matches the whole name. The mirror goes "
    "on with the others. Repeatable.",
)
@click.option(
    "--undecided",
    type=click.Choice(["cut", "abort"]),
    default="cut",
    show_default=True,
    help="A transaction may be committed in one partition and open in another, and neither the records nor the source "
    "decide that it is the same one. cut: the partition ends before the transaction; the dropped records are kept in a "
    "file of the log directory. abort: the transaction is aborted there, and later records of others stay.",
)
@json_option
@bootstrap_option
@timeout_option
def promote(
    name: str, topics: tuple[str, ...], undecided: str, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Make the topics of the mirror NAME ordinary topics, which clients may write.

    Copying ends, also while the source runs: stop its producers first and wait for a lag of 0 to lose nothing. Open
    transactions are settled: committed if another partition or the source shows the commit, else aborted. The source is
    asked for a few seconds; it may be dead.

    The promotion goes on in the broker if this command ends, and after a crash of the broker. Repeat the command to see
    its result. Afterwards `barnabas mirror failback` lets the former source follow.
    """
    from barnabas.commands.mirror.descriptions import counted_promotion, print_promotion
    from barnabas.commands.output import print_json
    from barnabas.commands.session import with_admin

    begun = time.monotonic()

    async def work(admin: Admin) -> MirrorDescription:
        from barnabas.protocol.mirrors.promotion import Undecided

        found = await admin.mirrors.promote(name, topics, undecided=Undecided(undecided))
        # The mirror's own state follows a moment after that of its last topic.
        while found.state == _PROMOTING or any(each.state == _PROMOTING for each in found.topics):
            if time.monotonic() - begun > _PART_OF_TIMEOUT * timeout_s:
                raise _unfinished(found)
            await asyncio.sleep(_POLL_SECONDS)
            found = await admin.mirrors.describe(name)
        return found

    found = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(_as_result(found))
    else:
        print_promotion(found, counted_promotion(found.promoted))


def _as_result(mirror: MirrorDescription) -> dict[str, Any]:
    """Return the result of a promotion as a JSON object."""
    from barnabas.commands.mirror.descriptions import counted_promotion, partition_object

    return {
        "name": mirror.name,
        "state": mirror.state,
        "topics": [each.topic for each in mirror.topics if each.state == "promoted"],
        **counted_promotion(mirror.promoted),
        "partitions": [partition_object(each) for each in mirror.promoted],
    }


def _unfinished(found: MirrorDescription) -> Exception:
    from barnabas.commands.exit_codes import ExitCode
    from barnabas.commands.failures import CommandFailure

    reason = "" if found.error is None else f": {found.error}"
    return CommandFailure(
        f"mirror {found.name} is still being promoted{reason}; the broker goes on, "
        f"`barnabas mirror promote {found.name}` waits again",
        ExitCode.TIMED_OUT,
    )
