"""`barnabas explain mirror`: how far a mirror's copies are behind, and why one is not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.protocol.messages.cluster.mirrors import MirrorDescription


@click.command()
@click.argument("name", metavar="MIRROR")
@json_option
@bootstrap_option
@timeout_option
def mirror(name: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Explain MIRROR: what its copies lack in records, bytes and time, and why a partition is not copied.

    Bytes are an estimate from the mean size of the copy's records. The document of --json is that of `barnabas mirror
    describe --json`.
    """
    from barnabas.commands.mirror.descriptions import as_object
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin
    from barnabas.explanation.mirror import sentences_of

    async def work(admin: Admin) -> MirrorDescription:
        return await admin.mirrors.describe(name)

    described = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(as_object(described))
        return
    for sentence in sentences_of(described):
        print_line(sentence)
