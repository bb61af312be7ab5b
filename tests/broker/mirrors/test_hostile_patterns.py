"""Patterns at which Python's `re` backtracks for ever: RE2 matches them in a moment, or a mirror stands still."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.mirrors.discovery import TopicFilter, discover
from barnabas.broker.mirrors.following.source_groups import SourceGroups
from barnabas.broker.mirrors.source import SourceMetadata, SourceTopic
from barnabas.clients.errors import ClientError
from barnabas.config.regex import RegexError
from barnabas.protocol.messages.groups.groups import ListGroupsResponse
from barnabas.protocol.mirrors.definition import definition_of

BACKTRACKS = "(a+)+b"
NAME = "a" * 40
SLOW = "(?:(?:.?){0,30}){0,30}b"


class Cluster:
    """A source with one broker and these groups."""

    def __init__(self, *groups: str) -> None:
        self.node_ids = [1]
        self._groups = groups

    async def load(self, _: object) -> None:
        """Do nothing."""

    async def ask(self, *_: object) -> ListGroupsResponse:
        return ListGroupsResponse(
            groups=cast(Any, [SimpleNamespace(group_id=each, group_type="Classic") for each in self._groups])
        )


def test_topics_of_the_source_do_not_make_a_pattern_backtrack() -> None:
    definition = definition_of("m", {"bootstrap": ["a:1"], "topics": [BACKTRACKS, "x"]})
    topics = {name: SourceTopic() for name in (NAME, NAME + "b")}
    found = discover(definition, SourceMetadata("other", topics), MetadataImage())
    assert list(found.take) == [NAME + "b"]


async def test_groups_of_the_source_do_not_make_a_pattern_backtrack() -> None:
    groups = SourceGroups(cast(Any, Cluster(NAME, NAME + "b")), [BACKTRACKS])
    async with asyncio.timeout(60):
        assert await groups.matching() == {1: [NAME + "b"]}


async def test_a_pattern_that_is_slow_even_so_ends_the_look_and_not_the_broker() -> None:
    names = [f"{'ab' * 120}{number}" for number in range(10_000)]
    with pytest.raises(RegexError, match="takes too long"):
        list(map(TopicFilter([SLOW]).matches, names))
    with pytest.raises(ClientError, match="takes too long"):
        await SourceGroups(cast(Any, Cluster(*names)), [SLOW]).matching()
