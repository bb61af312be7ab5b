"""`__transaction_state`: its configs. Source: Kafka's TransactionStateManager.transactionTopicConfigs.

Kafka sets min.insync.replicas to transaction.state.log.min.isr, 2 by default. A single node has one replica, so that
property is not served and the topic has 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator_log.topic import CoordinatorTopic

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.topics.topics import NewTopic

TRANSACTION_TOPIC: Final = "__transaction_state"


def new_transaction_topic(config: BrokerConfig) -> NewTopic:
    """Return the topic as Kafka creates it, with the one replica that a single node has."""
    from barnabas.protocol.messages.topics.topics import NewTopic  # late: most starts create no topic

    return NewTopic(
        TRANSACTION_TOPIC,
        config.get_int("transaction.state.log.num.partitions"),
        1,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": str(config.get_int("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        },
    )


TRANSACTION_STATE: Final = CoordinatorTopic(
    TRANSACTION_TOPIC, "transaction.state.log.num.partitions", new_transaction_topic
)
