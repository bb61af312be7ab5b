"""`barnabas explain group`: lag, what retention deletes unread, and why the group rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.explanation.group_findings import ExplainedGroup


@click.command()
@click.argument("name", metavar="GROUP")
@json_option
@bootstrap_option
@timeout_option
def group(name: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Explain GROUP's lag, what retention takes from it, and its rebalances.

    For each partition: the lag in records, bytes and time; whether retention deletes records before the group has read
    them, when, and how many. Then which members hold the group up, and the latest events: who joined, left or timed
    out.
    """
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin
    from barnabas.explanation.group import json_of, sentences_of
    from barnabas.explanation.group_findings import explain_group

    async def work(admin: Admin) -> ExplainedGroup:
        return explain_group(name, await admin.explain_group(name))

    explained = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(json_of(explained))
        return
    for sentence in sentences_of(explained):
        print_line(sentence)
