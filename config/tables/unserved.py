"""The properties of Apache Kafka 3.7 to 4.3 that Barnabas does not serve.

Users start Barnabas with an existing server.properties: these names are accepted, kept and warned about once; any other
unknown name is refused. Names and versions are those of KafkaConfig.configDef() and LogConfig.configNames() of 3.7.2,
3.8.1, 3.9.1, 4.0.0, 4.1.0, 4.2.0 and 4.3.0, with those of its authorizer and its dynamic quotas. Imported only when a
name is not served (names.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from barnabas.config.value import trim

# Kafka versions -> names.
_BROKER = {
    "3.7 to 4.3": """
        alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds auto.leader.rebalance.enable broker.heartbeat.interval.ms
        broker.rack broker.session.timeout.ms client.quota.callback.class controlled.shutdown.enable
        controller.quorum.append.linger.ms controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
        controller.quorum.retry.backoff.ms controller.socket.timeout.ms create.topic.policy.class.name
        delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
        follower.replication.throttled.rate group.coordinator.threads initial.broker.registration.timeout.ms
        kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
        leader.replication.throttled.rate log.local.retention.bytes log.local.retention.ms
        metadata.log.segment.bytes metadata.log.segment.ms
        metadata.max.idle.interval.ms metric.reporters metrics.num.samples metrics.recording.level
        metrics.sample.window.ms num.io.threads num.network.threads num.replica.alter.log.dirs.threads
        num.replica.fetchers offsets.commit.timeout.ms offsets.topic.replication.factor
        producer.purgatory.purge.interval.requests queued.max.requests
        remote.log.index.file.cache.total.size.bytes remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
        remote.log.storage.manager.class.name remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix remote.log.storage.system.enable replica.fetch.backoff.ms
        replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
        replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
        replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms
        sasl.client.callback.handler.class sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
        sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
        sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
        sasl.oauthbearer.token.endpoint.url security.providers server.max.startup.time.ms
        socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.endpoint.identification.algorithm
        ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm transaction.state.log.min.isr
        transaction.state.log.replication.factor unclean.leader.election.enable
    """,
    "3.8 to 4.3": """
        group.coordinator.append.linger.ms log.dir.failure.timeout.ms max.request.partition.size.limit
        remote.fetch.max.wait.ms remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
        unstable.feature.versions.enable
    """,
    "3.9 to 4.3": """
        unclean.leader.election.interval.ms
    """,
    "4.0 to 4.3": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
        group.share.persister.class.name remote.list.offsets.request.timeout.ms share.coordinator.append.linger.ms
        share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.replication.factor share.coordinator.threads share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests
    """,
    "4.1 to 4.3": """
        group.consumer.regex.refresh.interval.ms internal.metadata.delete.delay.millis
        internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.scope
    """,
    "4.2 to 4.3": """
        controller.quorum.auto.join.enable
        remote.log.manager.follower.thread.pool.size
    """,
    "4.3": """
        controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes cordoned.log.dirs
        follower.fetch.last.tiered.offset.enable group.coordinator.background.threads
        group.coordinator.cached.buffer.max.bytes remote.log.index.file.cache.ttl.ms
        share.coordinator.cached.buffer.max.bytes
    """,
    "3.7": """
        unstable.metadata.versions.enable
    """,
    "3.7 to 3.9": """
        auto.include.jmx.reporter broker.id.generation.enable control.plane.listener.name
        controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms delegation.token.master.key
        eligible.leader.replicas.enable inter.broker.protocol.version leader.imbalance.per.broker.percentage
        log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms
        offsets.commit.required.acks password.encoder.cipher.algorithm password.encoder.iterations
        password.encoder.key.length password.encoder.keyfactory.algorithm password.encoder.old.secret
        password.encoder.secret reserved.broker.max.id zookeeper.clientCnxnSocket zookeeper.connect
        zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
        zookeeper.metadata.migration.min.batch.size zookeeper.session.timeout.ms zookeeper.set.acl
        zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols
        zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password
        zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
        zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type
    """,
    "3.7 to 4.0": """
        group.coordinator.new.enable metadata.log.segment.min.bytes
    """,
    "3.9 to 4.0": """
        group.share.max.groups
    """,
    "3.9 to 4.2": """
        group.share.enable
    """,
    "4.0": """
        share.fetch.max.fetch.records
    """,
    "4.1 to 4.2": """
        internal.metadata.max.fetch.size.in.bytes
    """,
}

_TOPIC = {
    "3.7 to 4.3": """
        follower.replication.throttled.replicas leader.replication.throttled.replicas local.retention.bytes
        local.retention.ms remote.storage.enable unclean.leader.election.enable
    """,
    "3.9 to 4.3": """
        remote.log.copy.disable remote.log.delete.on.disable
    """,
    "3.7 to 3.9": """
        message.downconversion.enable message.format.version message.timestamp.difference.max.ms
    """,
}

# Families whose names depend on a listener, a plug-in or a provider.
UNSERVED_PREFIXES = ("config.providers.", "rsm.config.", "rlmm.config.", "metrics.context.")

# Those that guard who may connect, read and write: their silence would be dangerous, so they are warned about apart.
_SECURITY_PREFIXES = (
    "ssl.",
    "sasl.",
    "security.",
    "listener.name.",
    "delegation.token.",
    "password.encoder.",
    "zookeeper.ssl.",
)
_SECURITY_NAMES = frozenset({"client.quota.callback.class", "zookeeper.set.acl"})

# Values that describe what Barnabas does anyway: no warning.
_HARMLESS = {
    "remote.log.storage.system.enable": "false",
    "unclean.leader.election.enable": "false",
}


def _versions_by_name(names_by_versions: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: versions for versions, names in names_by_versions.items() for name in names.split()})


# Name -> the Kafka versions that have it ("3.7 to 4.3").
UNSERVED_PROPERTIES = _versions_by_name(_BROKER)
UNSERVED_TOPIC_PROPERTIES = _versions_by_name(_TOPIC)


def is_unserved(name: str) -> bool:
    """Return whether Kafka 3.7 to 4.3 has the broker property and Barnabas does not serve it."""
    return name in UNSERVED_PROPERTIES or name.startswith(UNSERVED_PREFIXES)


def is_security(name: str) -> bool:
    """Return whether the unserved property restricts who may connect, read or write."""
    return name in _SECURITY_NAMES or name.startswith(_SECURITY_PREFIXES)


def is_harmless(name: str, text: str) -> bool:
    """Return whether the unserved property is set to what Barnabas does anyway."""
    return _HARMLESS.get(name, "").lower() == trim(text).lower() != ""
