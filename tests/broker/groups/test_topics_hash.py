"""A group's metadata hash equals Kafka's. hash4j 0.22, which Kafka 4.3 uses, computed the expected values."""

from __future__ import annotations

from typing import Any, cast

import pytest
import xxhash

from barnabas.broker.groups.expressions.topics_hash import group_hash
from barnabas.broker.metadata.image import MetadataImage, TopicImage

BY_HASH4J = [
    (0, 3244421341483603138),
    (1, 1433843135270481901),
    (2, 2058273368586827884),
    (3, 12180141160879835164),
    (4, 7895465118229274323),
    (5, 11062565685660633911),
    (8, 6941064856527638883),
    (9, 18374517719163151272),
    (12, 7505606446185984409),
    (16, 13314990914799711621),
    (17, 8163341949877205007),
    (31, 17096134949297616051),
    (32, 1873302701886544469),
    (33, 4486878507168070088),
    (64, 2917965298538373825),
    (100, 13083933661539568799),
    (128, 7440608504995537343),
    (129, 14295761343243267012),
    (130, 11970791819318324907),
    (200, 8389308914288017243),
    (240, 7229805477010515663),
    (241, 10082113959289486871),
    (256, 4339360625268998362),
    (300, 18274095394255143463),
    (1023, 15161797645365529668),
    (1024, 11205349619999208113),
    (1025, 9253807012321506678),
    (1088, 3424848841118183642),
    (4096, 15511108803552338814),
    (5000, 8762507191635236893),
]


@pytest.mark.parametrize(("size", "expected"), BY_HASH4J)
def test_xxh3_is_that_of_hash4j(size: int, expected: int) -> None:
    assert xxhash.xxh3_64_intdigest(bytes((number * 7 + 3) & 255 for number in range(size))) == expected


def image(partitions: int) -> MetadataImage:
    topic = TopicImage("orders", bytes(range(1, 17)), dict.fromkeys(range(partitions), cast(Any, 0)))
    return MetadataImage(topics={"orders": topic})


def test_the_hash_of_a_group_is_that_of_kafka() -> None:
    assert group_hash({"orders", "not-there"}, image(3)) == 4469793264692497189


def test_a_group_without_topics_has_0_and_a_topic_that_grows_changes_it() -> None:
    assert group_hash({"not-there"}, image(3)) == 0
    assert group_hash({"orders"}, image(4)) != group_hash({"orders"}, image(3))
