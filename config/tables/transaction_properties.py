"""The properties of transactions and of the topic `__transaction_state`.

Source: Apache Kafka 4.3's TransactionStateManagerConfig, TransactionLogConfig.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.property import Property, PropertyType, UpdateMode
from barnabas.config.validators import AtLeast

BOOLEAN, INT = PropertyType.BOOLEAN, PropertyType.INT

TRANSACTIONS = "Transactions"

TRANSACTION_PROPERTIES: Sequence[Property] = (
    Property(
        "transaction.max.timeout.ms",
        INT,
        900000,
        "Longest transaction.timeout.ms that a producer may request. An open transaction holds back the read_committed "
        "consumers of its partitions until it ends or times out.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10000,
        "How often transactions that exceeded their timeout are looked for and aborted.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
    Property(
        "transactional.id.expiration.ms",
        INT,
        604800000,
        "How long a transactional id is kept without a change. One with an open transaction is kept.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3600000,
        "How often expired transactional ids are looked for and removed.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Whether a producer may open transactions without a timeout, which an external coordinator ends, as the Spark "
        "sink does. Such a transaction holds back read_committed consumers until it is ended, if need be by hand.",
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether records of producers before Kafka 4.0 are refused in a partition that was not added to their "
        "transaction. Otherwise a late request can open a transaction that nothing ends.",
        update_mode=UpdateMode.CLUSTER_WIDE,
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state when it is created, at the first use of a transactional id. The id decides "
        "its partition: adding partitions later makes ids lose their state.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.state.log.segment.bytes",
        INT,
        104857600,
        "segment.bytes of __transaction_state when it is created. Small segments are compacted sooner, which keeps the "
        "broker's start short.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
    Property(
        "transaction.state.log.load.buffer.size",
        INT,
        5242880,
        "Bytes read at a time when the states of transactional ids are loaded at start.",
        AtLeast(1),
        group=TRANSACTIONS,
    ),
)
