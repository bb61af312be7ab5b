"""The properties of TLS: key stores, trust stores, protocols and client certificates.

Source: Apache Kafka 4.3's SslConfigs and BrokerSecurityConfigs. Each takes the prefix `listener.name.<listener>.`;
ssl.handshake.timeout.ms is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from barnabas.config import property as types
from barnabas.config.property import PropertyType, UpdateMode
from barnabas.config.validators import AtLeast, ListOf, OneOf

BOOLEAN, STRING, INT = PropertyType.BOOLEAN, PropertyType.STRING, PropertyType.INT
LIST, PASSWORD = PropertyType.LIST, PropertyType.PASSWORD
PER_BROKER = UpdateMode.PER_BROKER

TLS = "TLS"

_property = partial(types.Property, group=TLS, per_listener=True)

TLS_PROPERTIES: Sequence[types.Property] = (
    _property(
        "ssl.keystore.type",
        STRING,
        "JKS",
        "Format of the key store: PEM or PKCS12. The type JKS, Kafka's default, reads PKCS12 files, too; convert "
        "files in the format JKS with keytool.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.keystore.location",
        STRING,
        None,
        "File with the broker's private key and certificate chain. A PEM file has both. The file is read again when it "
        "changes.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.keystore.password",
        PASSWORD,
        None,
        "Password of the PKCS12 key store. A PEM file has none; ssl.key.password decrypts its key.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.key.password",
        PASSWORD,
        None,
        "Password of the private key.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.keystore.key",
        PASSWORD,
        None,
        "The private key itself, as PEM (PKCS#8). Needs ssl.keystore.type=PEM and ssl.keystore.certificate.chain.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        "The certificate chain itself, as PEM: the broker's certificate first, then its issuers.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.truststore.type",
        STRING,
        "JKS",
        "Format of the trust store, as that of the key store.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.truststore.location",
        STRING,
        None,
        "File with the certificates that client certificates must be issued by. Unset: the system's certificates. The "
        "file is read again when it changes.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.truststore.password",
        PASSWORD,
        None,
        "Password of the PKCS12 trust store. A PEM file has none.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        "The trusted certificates themselves, as PEM. Needs ssl.truststore.type=PEM.",
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.client.auth",
        STRING,
        "none",
        "Client certificates: required, requested (a client without one is ANONYMOUS) or none. On a SASL_SSL listener "
        "only the value with the listener's prefix counts, as in Kafka.",
        OneOf(("required", "requested", "none")),
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "How the distinguished name of a client certificate becomes a user name: rules RULE:pattern/replacement/[LU], "
        "comma-separated; the first whose pattern matches the whole name wins. DEFAULT: the name itself.",
    ),
    _property(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        "Kafka's name of the SSLContext, TLSv1.2 or TLSv1.3. ssl.enabled.protocols decides which versions clients may "
        "use.",
        OneOf(("TLSv1.3", "TLSv1.2", "TLS")),
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "TLS versions that clients may use. TLSv1.1 and older are not served.",
        ListOf(("TLSv1.2", "TLSv1.3"), may_be_empty=False),
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.cipher.suites",
        LIST,
        (),
        "Cipher suites by their IANA names, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384. Empty: OpenSSL's choice. "
        "Python before 3.15 cannot restrict the suites of TLS 1.3.",
        ListOf(),
        update_mode=PER_BROKER,
    ),
    _property(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Whether a new key store may have another distinguished name than the one that it replaces.",
    ),
    _property(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Whether a new key store may lack subject alternative names of the one that it replaces.",
    ),
    _property(
        "ssl.handshake.timeout.ms",
        INT,
        10000,
        "Time in which a client must finish the TLS handshake. Not in Kafka.",
        AtLeast(1),
    ),
)

STORE_PROPERTIES = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)
"""Properties of key and trust stores, of brokers and clients.

A broker's change at run time with a listener's prefix only (Kafka's SslConfigs.RECONFIGURABLE_CONFIGS).
"""
