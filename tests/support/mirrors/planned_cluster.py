"""A metadata image on which plans about mirrors are carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.metadata.configs import plan_alter_configs
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.log.snapshot_file import snapshot_records
from barnabas.broker.metadata.mirrors.definitions import plan_create_mirror
from barnabas.broker.metadata.mirrors.topics import (
    plan_take_topic,
)
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.plan import Plan
from barnabas.config import BrokerConfig
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    AlterConfigsResult,
)
from barnabas.protocol.messages.topics.topics import CreatableTopicResult
from barnabas.protocol.metadata.records import MetadataRecord

DIRECTORY, SOURCE_ID = bytes([7] * 16), bytes([8] * 16)
FIELDS: dict[str, Any] = {"bootstrap": ["a:9092"], "topics": ["orders.*"]}
CONFIG = BrokerConfig.of()

ImageOf = Callable[[list[MetadataRecord]], MetadataImage]


class Cluster:
    """An image that plans are carried out on."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image

    def change(self, plan: Plan[Any]) -> list[Any]:
        builder = ImageBuilder(self.image)
        for record in plan.records:
            builder.apply(record)
        self.image = builder.build()
        return plan.results

    def create(self, name: str = "east", **fields: Any) -> None:
        self.change(plan_create_mirror(self.image, name, {**FIELDS, **fields}, node_id=1, cluster_id="c"))

    def take(self, topic: str = "orders", mirror: str = "east", **more: Any) -> CreatableTopicResult:
        settings = {"source_id": SOURCE_ID, "partitions": 2, "configs": {"cleanup.policy": "compact"}, **more}
        plan = plan_take_topic(self.image, mirror, topic, config=CONFIG, placement=self.placement(), **settings)
        (result,) = self.change(plan)
        assert isinstance(result, CreatableTopicResult)
        return result

    def placement(self) -> Placement:
        return Placement(1, [DIRECTORY], self.image)

    def alter_default(self, *operations: AlterConfigOp, replace: bool = False) -> AlterConfigsResult:
        resource = AlterConfigsResource(type=BROKER_RESOURCE, name="", operations=list(operations))
        plan = plan_alter_configs(self.image, [resource], config=CONFIG, node_id=1, replace=replace)
        (result,) = self.change(plan)
        assert isinstance(result, AlterConfigsResult)
        return result

    def replayed_snapshot(self) -> MetadataImage:
        builder = ImageBuilder(MetadataImage())
        for record in snapshot_records(self.image):
            builder.apply(record)
        return builder.build()
