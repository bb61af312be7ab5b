"""Which topics a mirror requests metadata of."""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.mirrors.discovery import named_topics
from barnabas.protocol.mirrors.definition import definition_of


@pytest.mark.parametrize(
    ("patterns", "named"),
    [
        (["orders", "bills-2_a"], {"orders", "bills-2_a"}),
        (["orders", "bills.*"], None),
        (["orders.eu"], None),
        ([r"orders\.eu\-1"], {"orders.eu-1"}),
        ([r"orders\d"], None),
        (["(orders)"], None),
    ],
)
def test_topics_are_requested_by_name_only_if_no_pattern_can_match_another(
    patterns: list[str], named: set[str] | None
) -> None:
    definition = definition_of("m", {"bootstrap": ["a:1"], "topics": patterns})
    assert named_topics(definition, MetadataImage()) == named
