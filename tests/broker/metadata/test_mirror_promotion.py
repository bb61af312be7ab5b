"""Plans of a promotion: chosen topics, leader epochs, and steps that are repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.broker.metadata.mirrors.definitions import plan_delete_mirror
from barnabas.broker.metadata.mirrors.promotion import (
    EPOCH_STRIDE,
    plan_begin_promotion,
    plan_finish_promotion,
    plan_prepare_promotion,
    promoted_epoch,
    promoting_topics,
)
from barnabas.broker.metadata.mirrors.refusals import read_only_mirror
from barnabas.broker.metadata.mirrors.topics import plan_set_topic_mirror
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.mirrors.definition import DesiredState
from barnabas.protocol.mirrors.promotion import PartitionPromotion, TopicPromotion, Undecided
from barnabas.protocol.mirrors.topic import TopicMirrorState
from tests.support.mirrors.planned_cluster import Cluster, ImageOf


@pytest.mark.parametrize("epoch", [-1, 0, 7, EPOCH_STRIDE // 2, EPOCH_STRIDE - 1, EPOCH_STRIDE, 5 * EPOCH_STRIDE + 3])
def test_a_promoted_epoch_is_far_above_the_sources_and_within_two_strides(epoch: int) -> None:
    found = promoted_epoch(epoch)
    assert found % EPOCH_STRIDE == 0
    assert EPOCH_STRIDE // 2 <= found - epoch <= 2 * EPOCH_STRIDE


def test_promotions_before_and_after_a_takeover_have_different_epochs() -> None:
    found = [promoted_epoch(epoch, number) for number, epoch in enumerate([7, 8, 8, 9])]
    assert found == [EPOCH_STRIDE + number for number in range(4)]


def test_the_last_epochs_are_used_one_by_one() -> None:
    assert promoted_epoch(2**31 - 3) == 2**31 - 2
    with pytest.raises(BrokerError) as refused:
        promoted_epoch(2**31 - 1)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_more_than_a_hundred_promotions_fit() -> None:
    epoch, count = 0, 0
    while epoch < 2**31 - 2 * EPOCH_STRIDE:
        epoch, count = promoted_epoch(epoch), count + 1
    assert count > 100


@pytest.fixture
def cluster(image_of: ImageOf) -> Cluster:
    """A mirror `east` with the topics `orders` and `bills`, of two partitions each."""
    cluster = Cluster(image_of([]))
    cluster.create()
    cluster.take("orders")
    cluster.take("bills")
    return cluster


def states(cluster: Cluster) -> dict[str, TopicMirrorState]:
    return {topic: each.state for topic, each in cluster.image.mirrors.topics.items()}


def test_chosen_topics_are_promoted_and_the_definition_stays(cluster: Cluster) -> None:
    assert cluster.change(plan_begin_promotion(cluster.image, "east", ["bil.*"], Undecided.ABORT)) == ["bills"]
    assert states(cluster) == {"orders": TopicMirrorState.MIRRORED, "bills": TopicMirrorState.PROMOTING}
    assert cluster.image.mirrors.definitions["east"].desired is DesiredState.RUNNING
    assert read_only_mirror(cluster.image, "bills") == "east"
    with pytest.raises(BrokerError, match="is being promoted"):
        plan_delete_mirror(cluster.image, "east", releases_topics=True)


def test_a_pattern_that_backtracks_promotes_what_it_matches(cluster: Cluster) -> None:
    cluster.take("a" * 40)
    cluster.take("a" * 40 + "b")
    assert plan_begin_promotion(cluster.image, "east", ["(a+)+b"], Undecided.CUT).results == ["a" * 40 + "b"]
    with pytest.raises(BrokerError, match=r"topics: '\(\?=a\)a' is not a regular expression that is served") as refused:
        plan_begin_promotion(cluster.image, "east", ["(?=a)a"], Undecided.CUT)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_each_step_is_repeated_without_effect(cluster: Cluster) -> None:
    begun = plan_begin_promotion(cluster.image, "east", [], Undecided.CUT)
    assert cluster.change(begun) == ["bills", "orders"]
    assert plan_begin_promotion(cluster.image, "east", [], Undecided.ABORT).records == []
    prepared = {
        topic: TopicPromotion(leader_epoch=EPOCH_STRIDE, commits={0: (7,)}, partitions={0: PartitionPromotion(5, 0, 5)})
        for topic in promoting_topics(cluster.image, "east")
    }
    assert len(cluster.change(plan_prepare_promotion(cluster.image, "east", prepared))) == 4
    assert plan_prepare_promotion(cluster.image, "east", prepared).results == []
    assert {each.leader_epoch for each in cluster.image.topics["orders"].partitions.values()} == {EPOCH_STRIDE}
    assert promoting_topics(cluster.replayed_snapshot(), "east")["orders"].promoted == prepared["orders"]
    assert read_only_mirror(cluster.image, "orders") == "east"
    assert cluster.change(plan_finish_promotion(cluster.image, "east", prepared)) == ["bills", "orders"]
    assert read_only_mirror(cluster.image, "orders") is None
    assert plan_finish_promotion(cluster.image, "east", prepared).records == []
    assert plan_begin_promotion(cluster.image, "east", [], Undecided.CUT).records == []


def test_a_stopped_mirror_can_neither_take_topics_nor_set_states(cluster: Cluster) -> None:
    before = cluster.image.mirrors.topics["orders"]
    cluster.change(plan_begin_promotion(cluster.image, "east", [], Undecided.CUT))
    assert cluster.take("more").error is ErrorCode.POLICY_VIOLATION
    late = replace(before, state=TopicMirrorState.FAILED)
    assert plan_set_topic_mirror(cluster.image, "orders", late).records == []


def test_existing_topics_are_taken_by_name_only(image_of: ImageOf) -> None:
    cluster = Cluster(image_of([]))
    cluster.create()
    for topic in ("orders", "bills"):
        cluster.take(topic)
    cluster.change(plan_delete_mirror(cluster.image, "east", releases_topics=True))
    identity = cluster.image.topics["orders"].topic_id
    cluster.create("west", take_existing=["orders"])
    assert cluster.take("bills", "west").error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.take("orders", "west", partitions=1).error is ErrorCode.INVALID_PARTITIONS
    assert cluster.take("orders", "west").error is ErrorCode.NONE
    assert cluster.image.topics["orders"].topic_id == identity
    assert read_only_mirror(cluster.image, "orders") == "west"
