"""Every property of the broker that Barnabas serves: Kafka's names, types, defaults and rules, our words.

Source: Apache Kafka 4.3's KafkaConfig.configDef(). Ours differ where one node or a first try needs it, and say so:
listeners on the loopback address, data in ./barnabas-data, no obligatory node.id and process.roles. Properties without
a counterpart in Kafka: metrics.listener, metrics.group.lag.enable, ignore.security, read.only. Names that Kafka has and
Barnabas does not serve are in unserved.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.property import CLUSTER_WIDE, INT_MAX, LONG_MAX, PER_BROKER, Property, PropertyType, by_name
from barnabas.config.tables.group_properties import GROUP_PROPERTIES
from barnabas.config.tables.log_properties import LOG_PROPERTIES
from barnabas.config.validators import AtLeast, ListOf

BOOLEAN, STRING, INT, LONG = PropertyType.BOOLEAN, PropertyType.STRING, PropertyType.INT, PropertyType.LONG
LIST = PropertyType.LIST

NODE = "Node and directories"
LISTENERS = "Listeners"
CONNECTIONS = "Connections and requests"
TOPICS = "Topics"
THREADS = "Threads"

BROKER_PROPERTIES: Mapping[str, Property] = by_name(
    Property(
        "node.id",
        INT,
        None,
        "This node's id. Unset: the one that the data directory's meta.properties holds, else 1. "
        "A different one than the directory's is refused.",
        AtLeast(0),
        group=NODE,
    ),
    Property(
        "broker.id",
        INT,
        -1,
        "The older name of node.id; when both are set they must be equal. Negative: unset.",
        group=NODE,
    ),
    Property(
        "process.roles",
        LIST,
        ("broker", "controller"),
        "What the node does, in a Kafka server.properties. Barnabas is always its own controller; a list without "
        "broker is refused.",
        ListOf(("broker", "controller"), may_be_empty=False),
        group=NODE,
    ),
    Property(
        "log.dir",
        LIST,
        ("./barnabas-data",),
        "Directory of the data; used when log.dirs is not set. A relative one is seen from the working directory.",
        ListOf(may_be_empty=False),
        group=NODE,
    ),
    Property(
        "log.dirs",
        LIST,
        None,
        "Directories of the data, comma-separated. A new partition goes to the one with the fewest. Unset: log.dir.",
        ListOf(may_be_empty=False),
        group=NODE,
    ),
    Property(
        "metadata.log.dir",
        STRING,
        None,
        "Directory of the metadata log (topics, partitions, configs). Unset: the first of log.dirs.",
        group=NODE,
    ),
    Property(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20 * 1024 * 1024,
        "After so many bytes of changes a snapshot of the metadata is written.",
        AtLeast(1),
        group=NODE,
    ),
    Property(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        60 * 60 * 1000,
        "So long after a change a snapshot of the metadata is written. 0: only by bytes.",
        AtLeast(0),
        group=NODE,
    ),
    Property(
        "metadata.max.retention.bytes",
        LONG,
        100 * 1024 * 1024,
        "Size of the metadata log and its snapshots together above which the oldest go; the newest snapshot and what "
        "follows it stay. Negative: no limit.",
        group=NODE,
    ),
    Property(
        "metadata.max.retention.ms",
        LONG,
        7 * 24 * 60 * 60 * 1000,
        "Age at which a snapshot of the metadata goes, and the log behind the next one. Negative: no limit.",
        group=NODE,
    ),
    Property(
        "ignore.security",
        BOOLEAN,
        False,
        "Open a directory whose metadata log holds ACLs, SCRAM users or delegation tokens. Barnabas keeps them and "
        "enforces none: without this it refuses to start, because every client could read and write everything. "
        "`barnabas serve --ignore-security` sets it.",
        group=NODE,
    ),
    Property(
        "read.only",
        BOOLEAN,
        False,
        "Serve the partitions of log.dirs to consumers and write nothing: no byte of any file, no lock, no recovery on "
        "disk. For a directory of any Kafka, one disk of a dead cluster, a read-only mount. Whatever would change "
        "something is answered POLICY_VIOLATION (44).",
        group=NODE,
    ),
    Property(
        "listeners",
        LIST,
        ("127.0.0.1:9092",),
        "Where clients connect: host:port or NAME://host:port, comma-separated. An empty host is every interface, "
        "port 0 a free port, IPv6 addresses stand in brackets. Names default to PLAINTEXT and must differ, ports "
        "must differ (but for one IPv4 and one IPv6 address).",
        ListOf(may_be_empty=False),
        group=LISTENERS,
    ),
    Property(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that clients are told to connect to, by listener name, when they differ from listeners "
        "(containers, address translation). Unset: listeners; a listener on every interface then answers each client "
        "with the address at which it was reached. 0.0.0.0 and :: cannot be advertised.",
        ListOf(may_be_empty=False),
        group=LISTENERS,
    ),
    Property(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener name: NAME:PROTOCOL, comma-separated. Barnabas opens PLAINTEXT only.",
        group=LISTENERS,
    ),
    Property(
        "controller.listener.names",
        LIST,
        (),
        "Listeners of a Kafka server.properties that serve the controllers. Barnabas does not open them.",
        ListOf(),
        group=LISTENERS,
    ),
    Property(
        "inter.broker.listener.name",
        STRING,
        None,
        "Listener over which brokers talk to each other, in a Kafka server.properties. A single node needs none: "
        "read and kept, without effect.",
        group=LISTENERS,
    ),
    Property(
        "controller.quorum.voters",
        LIST,
        (),
        "Controllers of a Kafka cluster, id@host:port. Read and kept, without effect; more than one is warned about, "
        "because Barnabas runs alone.",
        ListOf(),
        group=LISTENERS,
    ),
    Property(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Controllers of a Kafka cluster to start from, host:port. Read and kept, without effect; more than one is "
        "warned about, because Barnabas runs alone.",
        ListOf(),
        group=LISTENERS,
    ),
    Property(
        "metrics.listener",
        STRING,
        "127.0.0.1:9404",
        "Where /metrics (Prometheus) and /healthz are served: host:port. Empty: nowhere. While unset, its port is 0 "
        "(a free one) when a client listener's is. Barnabas's own.",
        group=LISTENERS,
    ),
    Property(
        "socket.listen.backlog.size",
        INT,
        50,
        "Connections that may wait in the kernel to be accepted.",
        AtLeast(1),
        group=CONNECTIONS,
    ),
    Property(
        "socket.send.buffer.bytes",
        INT,
        102400,
        "SO_SNDBUF of client connections; -1 leaves it to the kernel.",
        AtLeast(-1),
        group=CONNECTIONS,
    ),
    Property(
        "socket.receive.buffer.bytes",
        INT,
        102400,
        "SO_RCVBUF of client connections; -1 leaves it to the kernel.",
        AtLeast(-1),
        group=CONNECTIONS,
    ),
    Property(
        "socket.request.max.bytes",
        INT,
        104857600,
        "Largest request; a connection that announces a larger one is closed.",
        AtLeast(1),
        group=CONNECTIONS,
    ),
    Property(
        "max.connections",
        INT,
        INT_MAX,
        "Client connections at a time over all listeners; a further one is closed at once.",
        AtLeast(0),
        CLUSTER_WIDE,
        group=CONNECTIONS,
    ),
    Property(
        "connections.max.idle.ms",
        LONG,
        600000,
        "After how long without a request a connection is closed. Negative: never.",
        group=CONNECTIONS,
    ),
    Property(
        "fetch.max.bytes",
        INT,
        57671680,
        "Most bytes of records in one answer to a fetch, whatever the client asks for (a first batch is always whole).",
        AtLeast(1024),
        group=CONNECTIONS,
    ),
    Property(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Create a topic when a client first asks for it.",
        group=TOPICS,
    ),
    Property(
        "delete.topic.enable",
        BOOLEAN,
        True,
        "Allow topics to be deleted.",
        group=TOPICS,
    ),
    Property(
        "num.partitions",
        INT,
        1,
        "Partitions of a topic that is created without a number.",
        AtLeast(1),
        group=TOPICS,
    ),
    Property(
        "default.replication.factor",
        INT,
        1,
        "Replicas of a topic that is created without a number. Barnabas is one node: whatever it says, a topic gets "
        "one, which is said once at start.",
        group=TOPICS,
    ),
    Property(
        "min.insync.replicas",
        INT,
        1,
        "Replicas that must have a record before acks=all is answered. Above 1 a single node answers "
        "NOT_ENOUGH_REPLICAS (19).",
        AtLeast(1),
        CLUSTER_WIDE,
        "min.insync.replicas",
        group=TOPICS,
    ),
    *LOG_PROPERTIES,
    *GROUP_PROPERTIES,
    Property(
        "background.threads",
        INT,
        10,
        "Threads for the scheduled tasks (retention, flushing, checkpoints, deletion).",
        AtLeast(1),
        CLUSTER_WIDE,
        group=THREADS,
    ),
    Property(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        "Rate to which moves of partitions between the log directories are held, all of them together. 0 halts them.",
        AtLeast(0),
        PER_BROKER,
        group=THREADS,
    ),
)
