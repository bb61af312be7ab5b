"""The name of a partition on the command line: TOPIC-PARTITION."""

from __future__ import annotations

import click

from barnabas.protocol.topic_partition import TopicPartition


def parse_partition(name: str) -> TopicPartition:
    """Parse a name such as orders-0. Raises BadParameter."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        raise click.BadParameter(f"{name} is not a partition: give TOPIC-PARTITION, for example orders-0")
    return TopicPartition(topic, int(number))
