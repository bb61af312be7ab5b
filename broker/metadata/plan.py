"""What an operation would do: the answers for the client, and the records that the writer is to append."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.protocol.metadata.records import MetadataRecord

Result = TypeVar("Result")


class Plan(NamedTuple, Generic[Result]):
    """`results` in the order of the request; `records` of what succeeded, to be appended together."""

    results: list[Result]
    records: list[MetadataRecord]


class PlanningImage:
    """The image as it will be once what was planned so far is applied: the items of one request see each other."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.records: list[MetadataRecord] = []

    def add(self, records: list[MetadataRecord]) -> None:
        """Plans `records` as well."""
        if not records:
            return
        self.records += records
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
        self.image = builder.build()
