"""The properties of security: authorization, principals and config providers, with those of TLS and SASL.

Source: Apache Kafka 4.3's ServerConfigs, StandardAuthorizer, BrokerSecurityConfigs and AbstractConfig.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.property import Property, PropertyType, UpdateMode
from barnabas.config.tables.sasl_properties import SASL_PROPERTIES
from barnabas.config.tables.tls_properties import TLS_PROPERTIES
from barnabas.config.validators import AtLeast, ClassName, ListOf

BOOLEAN, STRING, LIST, CLASS = PropertyType.BOOLEAN, PropertyType.STRING, PropertyType.LIST, PropertyType.CLASS
INT, LONG = PropertyType.INT, PropertyType.LONG

AUTHORIZATION = "Authorization"

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
DEFAULT_PRINCIPAL_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

SECURITY_PROPERTIES: Sequence[Property] = (
    *TLS_PROPERTIES,
    *SASL_PROPERTIES,
    Property(
        "authorizer.class.name",
        STRING,
        "",
        f"{STANDARD_AUTHORIZER} switches on authorization by ACLs. Empty: every client may do everything.",
        ClassName(("", STANDARD_AUTHORIZER)),
        group=AUTHORIZATION,
    ),
    Property(
        "super.users",
        STRING,
        "",
        "Principals that may do everything, such as User:admin, separated by semicolons.",
        group=AUTHORIZATION,
    ),
    Property(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Whether a resource that no ACL mentions is open to everyone.",
        group=AUTHORIZATION,
    ),
    Property(
        "audit.log.path",
        STRING,
        "",
        "File of the audit log: denied requests as JSON lines. Empty: the lines go to the broker's log, logger "
        "barnabas.audit. Not in Kafka.",
        group=AUTHORIZATION,
    ),
    Property(
        "audit.log.grants",
        BOOLEAN,
        False,
        "Whether the audit log has granted requests too. Decisions are then not remembered, which makes each request "
        "slower. Not in Kafka.",
        group=AUTHORIZATION,
    ),
    Property(
        "audit.log.max.bytes",
        LONG,
        100 * 1024 * 1024,
        "Size at which the audit log's file is renamed to <path>.1, which replaces the previous one. Not in Kafka.",
        AtLeast(4096),
        group=AUTHORIZATION,
    ),
    Property(
        "audit.log.max.lines.per.second",
        INT,
        100,
        "Lines of the audit log in one second, shared by the principals: one alone gets a half. More are counted, and "
        "the counts are written. Not in Kafka.",
        AtLeast(1),
        group=AUTHORIZATION,
    ),
    Property(
        "principal.builder.class",
        CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        "Kafka's builder of principals; only the default is served.",
        ClassName((DEFAULT_PRINCIPAL_BUILDER,)),
        UpdateMode.PER_BROKER,
        group=AUTHORIZATION,
        per_listener=True,
    ),
    Property(
        "early.start.listeners",
        LIST,
        None,
        "Listeners that a Kafka controller needs while ACLs are loaded. Accepted without effect: Barnabas has its "
        "ACLs before it listens.",
        ListOf(),
        group=AUTHORIZATION,
    ),
    Property(
        "config.providers",
        LIST,
        (),
        "Names of config providers, which replace ${provider:path:key} in values. Each needs "
        "config.providers.<name>.class: Kafka's FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider.",
        ListOf(),
        group=AUTHORIZATION,
    ),
)
