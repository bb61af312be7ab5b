"""The broker properties that Barnabas serves: Kafka's names, types, defaults and rules with our own texts.

Source: Apache Kafka 4.3's KafkaConfig.configDef(). Where one node or a first try needs it, ours differ and the text
mentions it: listeners on the loopback address, data in ./barnabas-data, node.id and process.roles optional. Properties
without a counterpart in Kafka: adopt.topics, client.metrics.enable, console.*, metrics.listener,
metrics.group.lag.enable, ignore.security, read.only,
standby.*, initial.features, ssl.handshake.timeout.ms, sasl.authentication.timeout.ms, audit.log.*. Kafka's names that
Barnabas does not serve are in unserved.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.property import LONG_MAX, Property, PropertyType, UpdateMode, by_name
from barnabas.config.tables.group_properties import GROUP_PROPERTIES
from barnabas.config.tables.log_properties import LOG_PROPERTIES
from barnabas.config.tables.quota_properties import QUOTA_PROPERTIES
from barnabas.config.tables.security_properties import SECURITY_PROPERTIES
from barnabas.config.tables.share_coordinator_properties import SHARE_COORDINATOR_PROPERTIES
from barnabas.config.tables.share_group_properties import SHARE_GROUP_PROPERTIES
from barnabas.config.tables.transaction_properties import TRANSACTION_PROPERTIES
from barnabas.config.validators import AtLeast, Between, ListOf, NamedLevels

BOOLEAN, STRING, INT, LONG = PropertyType.BOOLEAN, PropertyType.STRING, PropertyType.INT, PropertyType.LONG
LIST = PropertyType.LIST
CLUSTER_WIDE, PER_BROKER = UpdateMode.CLUSTER_WIDE, UpdateMode.PER_BROKER

NODE = "Node and directories"
LISTENERS = "Listeners"
CONNECTIONS = "Connections and requests"
TOPICS = "Topics"
THREADS = "Threads"

INITIAL_FEATURES = (
    ("transaction.version", 0, 2),
    ("share.version", 0, 1),
    ("streams.version", 0, 1),
    ("metadata.version", 7, 30),
)
"""Features that initial.features may set, with their lowest and highest level."""

BROKER_PROPERTIES: Mapping[str, Property] = by_name(
    Property(
        "node.id",
        INT,
        None,
        "This node's id. Unset: the id in the data directory's meta.properties, else 1. "
        "An id that differs from the directory's is refused.",
        AtLeast(0),
        group=NODE,
    ),
    Property(
        "broker.id",
        INT,
        -1,
        "The older name of node.id; if both are set, they must be equal. Negative: unset.",
        group=NODE,
    ),
    Property(
        "process.roles",
        LIST,
        ("broker", "controller"),
        "The node's roles in a Kafka server.properties. Barnabas is always its own controller; a list without broker "
        "is refused.",
        ListOf(("broker", "controller"), may_be_empty=False),
        group=NODE,
    ),
    Property(
        "log.dir",
        LIST,
        ("./barnabas-data",),
        "Data directory; used when log.dirs is not set. A relative path starts at the working directory.",
        ListOf(may_be_empty=False),
        group=NODE,
    ),
    Property(
        "log.dirs",
        LIST,
        None,
        "Data directories, comma-separated. A new partition goes to the one that has the fewest. Unset: log.dir.",
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
        "Bytes of metadata changes after which a snapshot is written.",
        AtLeast(1),
        group=NODE,
    ),
    Property(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        60 * 60 * 1000,
        "Time after a metadata change until a snapshot is written. 0: only by bytes.",
        AtLeast(0),
        group=NODE,
    ),
    Property(
        "metadata.max.retention.bytes",
        LONG,
        100 * 1024 * 1024,
        "Size of the metadata log with its snapshots above which the oldest are deleted; the newest snapshot and the "
        "log after it are kept. Negative: no limit.",
        group=NODE,
    ),
    Property(
        "metadata.max.retention.ms",
        LONG,
        7 * 24 * 60 * 60 * 1000,
        "Age at which a metadata snapshot is deleted, with the log before the next one. Negative: no limit.",
        group=NODE,
    ),
    Property(
        "adopt.topics",
        BOOLEAN,
        False,
        "Serve the topics of a directory that has no metadata log: one of a Kafka with ZooKeeper, or one whose "
        "metadata log is lost. Without this setting the broker refuses to start on it, because the topics' configs are "
        "not in it. They get cleanup.policy=delete, retention.ms=-1 and retention.bytes=-1, so that nothing is deleted "
        "or compacted until somebody sets their configs. It is for one start, and `barnabas serve --adopt-topics` sets "
        "it.",
        group=NODE,
    ),
    Property(
        "ignore.security",
        BOOLEAN,
        False,
        "Serve a directory whose metadata log holds ACLs or SCRAM users although the configuration does not enforce "
        "them. Without this setting the broker refuses to start if there are ACLs and no authorizer.class.name, or "
        "users and neither an authorizer nor a listener with authentication: every client could read and write "
        "everything. Client quotas are enforced in any case. "
        "`barnabas serve --ignore-security` sets it.",
        group=NODE,
    ),
    Property(
        "initial.features",
        LIST,
        ("transaction.version=2", "share.version=1", "streams.version=1"),
        "Feature levels of a new directory, as `kafka-storage format --feature` sets them; an existing directory keeps "
        "its own, which kafka-features changes. A feature that is not named begins at 0, metadata.version at 19. "
        "Apache Kafka 3.7 to 3.9 start on a directory only if all of these are 0, 4.0 only if share.version and "
        "streams.version are, 4.1 only if streams.version is.",
        NamedLevels(INITIAL_FEATURES),
        group=NODE,
    ),
    Property(
        "read.only",
        BOOLEAN,
        False,
        "Serve the partitions of log.dirs to consumers and write nothing: no byte of any file, no lock, no recovery on "
        "disk. For a directory of any Kafka, one disk of a dead cluster, or a read-only mount. Requests that would "
        "change something are answered POLICY_VIOLATION (44).",
        group=NODE,
    ),
    Property(
        "standby.arbiter.command",
        STRING,
        None,
        "A command, with its arguments, that a standby runs without a shell when the active broker does not answer: "
        "with exit code 0 the standby takes over by itself. Unset: only `barnabas standby promote` lets it take over.",
        group=NODE,
    ),
    Property(
        "standby.arbiter.after.ms",
        INT,
        10_000,
        "How long the active broker must not have answered before a standby runs its arbiter, and the time between two "
        "runs.",
        AtLeast(1),
        group=NODE,
    ),
    Property(
        "standby.bootstrap.servers",
        LIST,
        (),
        "Addresses at which this broker's standby serves once it has taken over. `barnabas serve` asks them before it "
        "serves, for at most two seconds each, and refuses if one has taken over. See docs/standby.md.",
        group=NODE,
    ),
    Property(
        "standby.command.config",
        STRING,
        None,
        "A file of client properties for the login at standby.bootstrap.servers. Its user needs CLUSTER_ACTION and "
        "ALTER on the cluster.",
        group=NODE,
    ),
    Property(
        "listeners",
        LIST,
        ("127.0.0.1:9092",),
        "Where clients connect: host:port or NAME://host:port, comma-separated. An empty host is every interface, "
        "port 0 a free port; IPv6 addresses are written in brackets. Names default to PLAINTEXT and must differ; ports "
        "must differ too, except for one IPv4 and one IPv6 address.",
        ListOf(may_be_empty=False),
        group=LISTENERS,
    ),
    Property(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that clients connect to, by listener name, if they differ from listeners (containers, address "
        "translation). Unset: listeners; a listener on every interface then answers each client "
        "with the address at which it was reached. 0.0.0.0 and :: cannot be advertised.",
        ListOf(may_be_empty=False),
        group=LISTENERS,
    ),
    Property(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener name: NAME:PROTOCOL, comma-separated. The protocols are PLAINTEXT, SSL, "
        "SASL_PLAINTEXT and SASL_SSL.",
        group=LISTENERS,
    ),
    Property(
        "controller.listener.names",
        LIST,
        (),
        "Controller listeners of a Kafka server.properties. Barnabas does not open them.",
        ListOf(),
        group=LISTENERS,
    ),
    Property(
        "inter.broker.listener.name",
        STRING,
        None,
        "Listener for traffic between brokers in a Kafka server.properties. Accepted without effect: Barnabas is a "
        "single node.",
        group=LISTENERS,
    ),
    Property(
        "controller.quorum.voters",
        LIST,
        (),
        "Controllers of a Kafka cluster, id@host:port. Accepted without effect; more than one causes a warning, "
        "because Barnabas is a single node.",
        ListOf(),
        group=LISTENERS,
    ),
    Property(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Bootstrap controllers of a Kafka cluster, host:port. Accepted without effect; more than one causes a warning, "
        "because Barnabas is a single node.",
        ListOf(),
        group=LISTENERS,
    ),
    Property(
        "metrics.listener",
        STRING,
        "127.0.0.1:9404",
        "Address of /metrics (Prometheus) and /healthz: host:port, or SSL://host:port with the key store of "
        "listener.name.metrics.ssl.*. Empty: not served. If unset and a client listener has port 0, the metrics get a "
        "free port too. Not in Kafka.",
        group=LISTENERS,
    ),
    Property(
        "console.listener",
        STRING,
        "",
        "Address of the console's web pages, host:port; port 0 is a free port. Empty: no console. The broker runs "
        "`barnabas console` as a child process, which needs the extra: pip install 'barnabas[console]'. It only shows. "
        "Where a listener has a login by password, people sign in with a user of the broker; otherwise everybody who "
        "reaches it sees what its user may see. Not in Kafka.",
        group=LISTENERS,
    ),
    Property(
        "console.command.config",
        STRING,
        None,
        "A file of client properties with which the console connects to the first listener. If the file has a login, "
        "nobody signs in, and everybody sees what that user may see. Unset: the console connects to the first "
        "SASL_PLAINTEXT listener with a login by password, otherwise to the first PLAINTEXT listener. Not in Kafka.",
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
        "Largest request in bytes; a connection that announces a larger one is closed.",
        AtLeast(1),
        group=CONNECTIONS,
    ),
    Property(
        "queued.max.request.bytes",
        LONG,
        -1,
        "Most memory of requests that are being received, beyond the first 256 KiB of each connection; one request may "
        "exceed it. Not positive: 512 MiB, at most a quarter of the memory of the machine or of the control group.",
        group=CONNECTIONS,
    ),
    Property(
        "connections.max.idle.ms",
        LONG,
        600000,
        "How long a connection may be idle before it is closed. Negative: never closed.",
        group=CONNECTIONS,
    ),
    Property(
        "fetch.max.bytes",
        INT,
        57671680,
        "Most bytes of records in one fetch response, whatever the client requests (a first batch is always complete).",
        AtLeast(1024),
        group=CONNECTIONS,
    ),
    Property(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "Most fetch sessions. Without one a consumer sends, and is sent, all of its partitions with every fetch.",
        AtLeast(0),
        group=CONNECTIONS,
    ),
    Property(
        "unstable.api.versions.enable",
        BOOLEAN,
        False,
        "Whether clients are offered versions of Kafka's protocol that Kafka holds back because they may still change: "
        "InitProducerId 6, two-phase commit. Barnabas' own clients use them without this.",
        group=CONNECTIONS,
    ),
    Property(
        "client.metrics.enable",
        BOOLEAN,
        False,
        "Ask clients for their metrics (KIP-714) and show on /metrics what they push. Which clients push which metrics "
        "is set by subscriptions: kafka-client-metrics, or kafka-configs --entity-type client-metrics. Not in Kafka, "
        "whose brokers do so where metric.reporters has a class that takes the metrics of clients.",
        group=CONNECTIONS,
    ),
    Property(
        "telemetry.max.bytes",
        INT,
        1024 * 1024,
        "Largest push of a client's metrics in bytes, as compressed.",
        AtLeast(1),
        group=CONNECTIONS,
    ),
    Property(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Create a topic when a client first requests its metadata.",
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
        "Partitions of a topic that is created without a partition count.",
        AtLeast(1),
        group=TOPICS,
    ),
    Property(
        "default.replication.factor",
        INT,
        1,
        "Replicas of a topic that is created without a replication factor. Barnabas is a single node: a topic always "
        "gets one, and another value causes a warning at start.",
        group=TOPICS,
    ),
    Property(
        "min.insync.replicas",
        INT,
        1,
        "Replicas that must have a record before acks=all is acknowledged. Above 1, a single node answers "
        "NOT_ENOUGH_REPLICAS (19).",
        AtLeast(1),
        CLUSTER_WIDE,
        "min.insync.replicas",
        group=TOPICS,
    ),
    Property(
        "standby.min.acks",
        INT,
        0,
        "Standbys that must have a record before acks=all is acknowledged and before consumers see it: 0 or 1. With 1, "
        "offset commits, transactions and metadata changes wait for the standby as well. docs/standby.md.",
        Between(0, 1),
        CLUSTER_WIDE,
        group=TOPICS,
    ),
    Property(
        "replica.lag.time.max.ms",
        LONG,
        30000,
        "With standby.min.acks=1: a standby that has not fetched, or lacks a record, for longer is out of time, and "
        "acks=all is refused with NOT_ENOUGH_REPLICAS (19).",
        group=TOPICS,
    ),
    *SECURITY_PROPERTIES,
    *QUOTA_PROPERTIES,
    *LOG_PROPERTIES,
    *GROUP_PROPERTIES,
    *SHARE_GROUP_PROPERTIES,
    *TRANSACTION_PROPERTIES,
    *SHARE_COORDINATOR_PROPERTIES,
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
        "Upper limit on the rate of all partition moves between log directories together. 0 halts them.",
        AtLeast(0),
        PER_BROKER,
        group=THREADS,
    ),
)
