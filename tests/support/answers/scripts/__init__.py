"""The scripts by room: what is asked of each API, in the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from barnabas.protocol.kafka.apis import KAFKA_APIS
from tests.support.answers.play import Play
from tests.support.answers.scripts.refused import refuse_in_part, refuse_unauthorized, refuse_unread

Script = Callable[[Play], None]
ROOMS: Final = ("bare", "cluster", "data", "groups", "security", "share", "small", "topics", "transactions")
_WITH_LESS: Final = ("bare", "small")
"""Rooms of brokers that differ from the others, for what only they refuse."""


def _scripts(room: str) -> Mapping[str, Script]:
    module = import_module(f"tests.support.answers.scripts.{room}")
    return {name: script for name, script in vars(module).items() if name in _LABELS}


_LABELS: Final = {api.key.label for api in KAFKA_APIS}
SCRIPTS: Final = {room: _scripts(room) for room in ROOMS}


def play_room(room: str, play: Play) -> None:
    """Play the scripts of a room, and of each API what every API refuses."""
    for api, script in SCRIPTS[room].items():
        play.begin(api)
        script(play)
        if room not in _WITH_LESS:
            refuse_unread(play, api)
    if room not in _WITH_LESS:
        nobody = play.log_in("nobody")
        for api in SCRIPTS[room]:
            play.begin(api)
            refuse_unauthorized(play, api, nobody)
        topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in ("orders", "hidden")]
        play.quiet("create_topics", {"topics": topics, "timeout": 1000})
        for api in SCRIPTS[room]:
            play.begin(f"{api} in part")
            refuse_in_part(play, api, nobody)
