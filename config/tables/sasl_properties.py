"""The properties of SASL: mechanisms, credentials, tokens of OAUTHBEARER, re-authentication.

Source: Apache Kafka 4.3's BrokerSecurityConfigs and SaslConfigs. Those of a listener take the prefixes
`listener.name.<listener>.` and, where a mechanism reads them, `listener.name.<listener>.<mechanism>.`;
sasl.authentication.timeout.ms is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from barnabas.config import property as types
from barnabas.config.listeners import PROTOCOLS
from barnabas.config.property import PropertyType, UpdateMode
from barnabas.config.validators import AtLeast, ClassName, ListOf, OneOf

STRING, INT, LONG = PropertyType.STRING, PropertyType.INT, PropertyType.LONG
LIST, PASSWORD, CLASS = PropertyType.LIST, PropertyType.PASSWORD, PropertyType.CLASS
PER_BROKER = UpdateMode.PER_BROKER

SASL = "SASL"

OAUTH_CALLBACK_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
OAUTH_CALLBACK_HANDLER_BEFORE_3_8 = (
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
)
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."

_of_listener = partial(types.Property, group=SASL, per_listener=True)
_of_mechanism = partial(types.Property, group=SASL, per_listener=True, per_mechanism=True)

SASL_PROPERTIES: Sequence[types.Property] = (
    _of_listener(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        "Mechanisms of a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. Kafka's default, GSSAPI "
        "(Kerberos), is not served, so a SASL listener needs a value.",
        ListOf(),
        update_mode=PER_BROKER,
    ),
    _of_mechanism(
        "sasl.jaas.config",
        PASSWORD,
        None,
        "Login module of a mechanism, as a JAAS line. It is read with the prefix of the listener and the mechanism "
        'only: listener.name.client.plain.sasl.jaas.config has the users of PLAIN, as user_alice="secret".',
        update_mode=PER_BROKER,
    ),
    _of_mechanism(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        "Validator of OAUTHBEARER tokens; read with the prefix of the listener and the mechanism only.",
        ClassName((OAUTH_CALLBACK_HANDLER, OAUTH_CALLBACK_HANDLER_BEFORE_3_8)),
    ),
    _of_listener(
        "sasl.server.max.receive.size",
        INT,
        524288,
        "Largest request in bytes before a client is authenticated. Never above 16 KiB, with OAUTHBEARER 160 KiB.",
        AtLeast(1),
    ),
    _of_listener(
        "sasl.authentication.timeout.ms",
        INT,
        30000,
        "Time in which a client must authenticate itself after it connected. Not in Kafka.",
        AtLeast(1),
    ),
    _of_mechanism(
        "connections.max.reauth.ms",
        LONG,
        0,
        "Longest time between two authentications of a connection; a client that does not repeat it in time is "
        "disconnected. 0: only the end of the client's credential counts. Negative: as 0.",
    ),
    types.Property(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "Delay before a connection is closed whose authentication failed.",
        AtLeast(0),
        group=SASL,
    ),
    _of_mechanism(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "The identity provider's public keys (JWKS): an https: or a file: URL. OAUTHBEARER needs it.",
    ),
    _of_mechanism(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3600000,
        "How often the public keys are fetched again.",
        AtLeast(1),
    ),
    _of_mechanism(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        "First delay before a failed fetch of the public keys is repeated.",
        AtLeast(0),
    ),
    _of_mechanism(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10000,
        "Longest delay before a failed fetch of the public keys is repeated.",
        AtLeast(0),
    ),
    _of_mechanism(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        "Issuer (iss) that a token must have. Unset: any, with a warning at start.",
    ),
    _of_mechanism(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        "Audiences (aud), one of which a token must have. Empty: any.",
        ListOf(),
    ),
    _of_mechanism(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        "Difference between the clocks of the identity provider and the broker that a token's times may have.",
        AtLeast(0),
    ),
    _of_mechanism(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        "Claim that has a token's scope.",
    ),
    _of_mechanism(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        "Claim that has the name of a token's user.",
    ),
    _of_mechanism(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        _PACKAGE + "DefaultJwtValidator",
        "Kafka's validator of tokens; its own two classes do the same here.",
        ClassName((_PACKAGE + "DefaultJwtValidator", _PACKAGE + "BrokerJwtValidator")),
    ),
    types.Property(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "Protocol between brokers in a Kafka server.properties. Accepted without effect: Barnabas is a single node.",
        OneOf(PROTOCOLS),
        group=SASL,
    ),
    _of_listener(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        "Mechanism between brokers in a Kafka server.properties. Accepted without effect: Barnabas is a single node.",
        update_mode=PER_BROKER,
    ),
    types.Property(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        "Secret from which the passwords of delegation tokens are computed. The metadata log does not have them, so "
        "every broker that serves a directory needs the same one. Unset: no delegation tokens.",
        group=SASL,
    ),
    types.Property(
        "delegation.token.max.lifetime.ms",
        LONG,
        604800000,
        "Longest lifetime of a delegation token, renewals included.",
        AtLeast(1),
        group=SASL,
    ),
    types.Property(
        "delegation.token.expiry.time.ms",
        LONG,
        86400000,
        "Time after which a delegation token expires unless it is renewed.",
        AtLeast(1),
        group=SASL,
    ),
    types.Property(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3600000,
        "How often expired delegation tokens are removed.",
        AtLeast(1),
        group=SASL,
    ),
)
