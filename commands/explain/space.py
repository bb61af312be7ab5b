"""`barnabas explain space`: who uses the disk, and when it is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.explanation.space_findings import FileSystemSpace


@click.command()
@json_option
@bootstrap_option
@timeout_option
def space(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Explain who uses the disk, how fast topics grow, and when it is full.

    For each file system with log directories: its topics by size, what each of them got within the last day, the size
    at which retention deletes as much as comes in, and when the disk is full if the rates stay.
    """
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin
    from barnabas.explanation.space import file_systems_of, space_json, space_sentences
    from barnabas.explanation.space_findings import explain_space

    async def work(admin: Admin) -> list[FileSystemSpace]:
        file_systems = file_systems_of(await admin.describe_log_dirs())
        explained = {each.name: await admin.explain_topic(each.name) for each in await admin.list_topics()}
        return explain_space(file_systems, explained)

    found = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json({"file_systems": [space_json(each) for each in found]})
        return
    for each in found:
        for sentence in space_sentences(each):
            print_line(sentence)
