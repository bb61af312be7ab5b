"""Exceptions of the client library, all of them a `ClientError`. Messages name the broker, topic or field concerned.

ClientError
  ClientConfigError       an invalid configuration value (also a ValueError)
  BrokerConnectionError   no connection, or a lost one (also a ConnectionError); names host:port and what to check
    ProtocolViolationError  the peer does not speak Kafka's protocol; the connection is closed
  AuthenticationError     TLS or SASL failed: untrusted certificate, wrong password; not retried
  FailbackError           a former source that cannot follow
  BrokerTimeoutError      no answer in time (also a TimeoutError)
  RefusedError            an error code of the broker, with message, topic and partition (also a BrokerError)
    UnknownTopicError       a topic or partition that does not exist
    OffsetOutOfRangeError   an offset outside the log, with the log's range
    PreparedTransactionLostError  a prepared transaction that cannot be committed any more
    CommitFailedError       a commit by a consumer that is no longer a member of its group
    LockLostError           an acknowledgement of a record that the share consumer does not have any more
    ProducerFencedError     a transactional producer that was replaced, or whose transaction took too long
    RecordTooLargeError     a record above a limit of the client or the broker
  DeliveryTimeoutError    records not acknowledged within delivery_timeout_ms (also a TimeoutError)
  BufferFullError         no room in buffer_memory within max_block_ms (also a TimeoutError)
  TransactionAbortableError  a transaction that can only be aborted, because a part of it failed
  TransactionAbortedError    records that were not sent, because their transaction was aborted
  CorruptBatchError       a fetched batch whose checksum or layout is wrong
  ClosedError             the producer, consumer, admin or connection was closed
"""

from __future__ import annotations

import re

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition


class ClientError(Exception):
    """Base class of the library's exceptions."""


class ClientConfigError(ClientError, ValueError):
    """An invalid configuration value; the message names the field."""


class BrokerConnectionError(ClientError, ConnectionError):
    """A broker that is unreachable, or a connection that was lost with requests in flight."""


class FailbackError(ClientError):
    """A former source that cannot follow this cluster; the message says why."""


class ProtocolViolationError(BrokerConnectionError):
    """A peer whose bytes are not Kafka's protocol. Not retriable."""


class AuthenticationError(ClientError):
    """A TLS handshake or a SASL login that failed. Not retriable: the next attempt would fail in the same way."""


class BrokerTimeoutError(ClientError, TimeoutError):
    """A broker that did not answer in time. The request may have been carried out."""


class ClosedError(ClientError):
    """A call after close(), or one that close() ended."""


class RefusedError(ClientError, BrokerError):
    """The broker's error for a topic, partition or resource; `code` is the wire code."""

    def __init__(
        self, code: ErrorCode, message: str, *, topic: str | None = None, partition: int | None = None
    ) -> None:
        super().__init__(code, message)
        self.topic = topic
        self.partition = partition

    @classmethod
    def of_partition(cls, topic_partition: TopicPartition, code: ErrorCode, message: str | None) -> RefusedError:
        """The error of one partition; the message names it."""
        sentence = _naming(str(topic_partition), message or reason_of(code))
        return cls(code, sentence, topic=topic_partition.topic, partition=topic_partition.partition)

    @classmethod
    def of_topic(cls, topic: str, code: ErrorCode, message: str | None) -> RefusedError:
        """The error of a whole topic; the message names it."""
        return cls(code, _naming(topic, message or reason_of(code)), topic=topic)


class OffsetOutOfRangeError(RefusedError):
    """`offset` is outside of the partition's `log_start_offset` .. `high_watermark` (-1 if unknown)."""

    def __init__(
        self, topic_partition: TopicPartition, offset: int, log_start_offset: int, high_watermark: int
    ) -> None:
        known = f" {log_start_offset}.." if log_start_offset >= 0 else ""
        known += str(high_watermark) if known and high_watermark >= 0 else ""
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{topic_partition}: offset {offset} is outside the log's range{known}; "
            "seek, or set offset_reset to earliest or latest",
            topic=topic_partition.topic,
            partition=topic_partition.partition,
        )
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class UnknownTopicError(RefusedError):
    """A topic or partition that does not exist. Not retriable: it is raised after retries."""

    def __init__(self, topic: str, partition: int | None, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message, topic=topic, partition=partition)

    @property
    def retriable(self) -> bool:
        """False."""
        return False


class PreparedTransactionLostError(RefusedError):
    """A prepared transaction that was aborted before it was committed, or whose transactional id has expired."""

    def __init__(self, transactional_id: str, code: ErrorCode) -> None:
        super().__init__(
            code,
            f"transaction {transactional_id} cannot be committed any more: it was aborted by its timeout or by an "
            "operator, or its transactional id has expired",
        )
        self.transactional_id = transactional_id


class CommitFailedError(RefusedError):
    """A commit by a consumer that is no longer a member. Others read on from its last commit."""

    def __init__(self, group: str, code: ErrorCode) -> None:
        super().__init__(
            code,
            f"group {group!r}: this consumer is no longer a member, and its partitions were reassigned: it did not "
            "read for max_poll_interval_ms, or sent no heartbeat for session_timeout_ms; the next read joins again",
        )
        self.group = group


class LockLostError(RefusedError):
    """A record that this share consumer does not have any more: its group has it delivered again, or it is done."""

    def __init__(self, topic_partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(
            ErrorCode.INVALID_RECORD_STATE,
            f"{topic_partition}: the record at offset {offset} is not this consumer's: {reason}",
            topic=topic_partition.topic,
            partition=topic_partition.partition,
        )
        self.offset = offset


class ProducerFencedError(RefusedError):
    """A transactional producer that cannot go on. Its last transaction was aborted, unless its commit was sent."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            ErrorCode.PRODUCER_FENCED,
            f"transactional id {transactional_id!r}: another producer has started with this id, or the transaction was "
            "open for longer than transaction_timeout_ms and the broker aborted it; close this producer, and start a "
            "new one only if it shall replace the other",
        )
        self.transactional_id = transactional_id


class RecordTooLargeError(RefusedError):
    """A record above max_request_bytes, buffer_memory, or the broker's limit (MESSAGE_TOO_LARGE)."""

    def __init__(self, topic: str, partition: int | None, message: str) -> None:
        super().__init__(ErrorCode.MESSAGE_TOO_LARGE, message, topic=topic, partition=partition)


class DeliveryTimeoutError(ClientError, TimeoutError):
    """Records of one partition that were not acknowledged in time; `last_error` is that of the last attempt."""

    def __init__(self, topic_partition: TopicPartition, message: str, last_error: BaseException | None) -> None:
        super().__init__(message)
        self.topic = topic_partition.topic
        self.partition = topic_partition.partition
        self.last_error = last_error


class BufferFullError(ClientError, TimeoutError):
    """buffer_memory stayed full for max_block_ms: records are sent faster than the broker takes them."""


class TransactionAbortableError(ClientError):
    """A transaction that can only be aborted. The cause is the error of the part that failed; a new one may succeed."""

    def __init__(self, transactional_id: str, reason: BaseException | str) -> None:
        super().__init__(
            f"transactional id {transactional_id!r}: the transaction can only be aborted, with abort_transaction() or "
            f"by leaving its block; then begin another one. Reason: {reason}"
        )
        self.transactional_id = transactional_id
        self.reason = reason


class TransactionAbortedError(ClientError):
    """Records that were not sent, because their transaction was aborted first."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f"transactional id {transactional_id!r}: the transaction was aborted before this was sent")
        self.transactional_id = transactional_id


class CorruptBatchError(ClientError):
    """A corrupt fetched batch. Seek to `next_offset` to skip it (-1 if its size is unknown)."""

    def __init__(self, topic_partition: TopicPartition, offset: int, next_offset: int, reason: str) -> None:
        skip = f"; seek to {next_offset} to skip the batch" if next_offset >= 0 else ""
        super().__init__(f"{topic_partition}: the batch at offset {offset} is corrupt: {reason}{skip}")
        self.topic = topic_partition.topic
        self.partition = topic_partition.partition
        self.offset = offset
        self.next_offset = next_offset


_SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition does not exist; create it first",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader at the moment",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker is not the partition's leader",
    ErrorCode.MESSAGE_TOO_LARGE: "the batch is above the topic's max.message.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer in-sync replicas than min.insync.replicas or standby.min.acks demand",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "the records are written, but not at enough in-sync replicas",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is not valid",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's log directory failed; see its log",
    ErrorCode.CORRUPT_MESSAGE: "the batch arrived with a wrong checksum or layout",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is outside the log's range",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata is above the broker's offset.metadata.max.bytes",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the broker is still loading committed offsets; try again",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, and only they may commit: stop them first",
    ErrorCode.ILLEGAL_GENERATION: "the group has started another generation",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is rebalancing: read on, and commit after that",
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has taken this one's group_instance_id",
    ErrorCode.REQUEST_TIMED_OUT: "the broker could not finish in time",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "the broker is missing batches that were sent before this one",
    ErrorCode.INVALID_PRODUCER_EPOCH: "the broker has seen a later epoch of this producer's id",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the broker does not know the producer's id",
    ErrorCode.INVALID_TXN_STATE: "the transaction is not in a state for this; the broker may have ended it",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the broker has expired the transactional id, or assigned it another "
    "producer id; start a new producer",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "transaction_timeout_ms is above the broker's transaction.max.timeout.ms",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the previous transaction of this id is still being completed; try again",
    ErrorCode.TRANSACTION_ABORTABLE: "the broker has not accepted this as a part of the transaction: abort it",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "no ACL allows this on the topic, or one denies it; `barnabas acl explain` "
    "shows which",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "no ACL allows this on the group, or one denies it; `barnabas acl explain` "
    "shows which",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "no ACL allows this on the cluster, or one denies it; `barnabas acl "
    "explain --cluster` shows which",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "no ACL allows this on the transactional id, or one denies it; "
    "`barnabas acl explain` shows which",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "the broker does not know the transactional id",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "an open transaction has offsets of this partition; try again when it has ended",
    ErrorCode.UNKNOWN_SERVER_ERROR: "internal error of the broker; see its log",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not serve this request",
}
"""Messages for error codes that come without one."""


def reason_of(code: ErrorCode) -> str:
    """Return the sentence for a code that came without a message."""
    return _SENTENCES.get(code, "the broker gave no reason")


def _naming(name: str, reason: str) -> str:
    """`reason`, with `name` in front unless it already contains that."""
    is_named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", reason)
    return reason if is_named else f"{name}: {reason}"
