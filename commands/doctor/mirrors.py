"""Mirrors in log directories: JSON for programs, sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.mirrors.refusals import read_only_mirror
from barnabas.explanation.wording import counted


def mirrors_json(image: MetadataImage) -> list[dict[str, Any]]:
    """Return the mirrors by name, with their definitions and topics."""
    return [
        {
            "name": name,
            "definition": definition.fields(),
            "topics": [
                {"topic": topic, "state": each.state.value, "read_only": read_only_mirror(image, topic) == name}
                for topic, each in sorted(image.mirrors.topics_of(name).items())
            ],
        }
        for name, definition in sorted(image.mirrors.definitions.items())
    ]


def mirror_sentences(image: MetadataImage) -> Iterator[str]:
    """Yield a sentence for each mirror, and one for each record of mirrors that cannot be read."""
    for name, definition in sorted(image.mirrors.definitions.items()):
        topics = counted(len(_read_only(image, name)), "read-only topic")
        yield f"mirror {name} of {', '.join(definition.bootstrap)}: {definition.desired}, {topics}"
    yield from image.mirrors.complaints()


def handover_notes(image: MetadataImage) -> list[str]:
    """Return what an operator must know who hands mirrored topics over to Apache Kafka."""
    return [
        f"mirror {name}: Kafka copies nothing and lets clients write to its "
        f"{counted(len(topics), 'read-only topic')}, which then cannot be mirrored any more"
        for name in sorted(image.mirrors.definitions)
        if (topics := _read_only(image, name))
    ]


def _read_only(image: MetadataImage, mirror: str) -> list[str]:
    return [topic for topic in image.mirrors.topics_of(mirror) if read_only_mirror(image, topic) == mirror]
