"""Texts of the .properties files that `barnabas security init` writes: Kafka's names, so that Kafka reads them too."""

from __future__ import annotations

from pathlib import Path

from barnabas.config.security.jaas import SCRAM_MODULE, password_entry
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER

MECHANISM = "SCRAM-SHA-512"


def server_properties(directory: Path, listen: str, host: str, port: int, user: str) -> str:
    """Return a server.properties with a SASL_SSL listener at `port` and an SSL listener at the next one."""
    address = f"[{listen}]" if ":" in listen else listen
    name = f"[{host}]" if ":" in host else host
    return f"""\
# Written by `barnabas security init`. Clients of SASL_SSL log in as SCRAM users, those of SSL by their certificate.
listeners=SASL_SSL://{address}:{port},SSL://{address}:{port + 1}
advertised.listeners=SASL_SSL://{name}:{port},SSL://{name}:{port + 1}
log.dirs={_escaped(str(directory / "data"))}

ssl.keystore.type=PEM
ssl.keystore.location={_escaped(str(directory / "broker.pem"))}
ssl.truststore.type=PEM
ssl.truststore.location={_escaped(str(directory / "ca.pem"))}

listener.name.sasl_ssl.sasl.enabled.mechanisms={MECHANISM}
# Apache Kafka needs this line; Barnabas has the users in its metadata log.
listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config={SCRAM_MODULE} required;

listener.name.ssl.ssl.client.auth=required
# The certificate of CN=alice is the user alice.
ssl.principal.mapping.rules=RULE:^CN=([^,]+)$/$1/,DEFAULT

authorizer.class.name={STANDARD_AUTHORIZER}
super.users=User:{user}
"""


def client_properties(host: str, port: int, user: str, password: str, authority: str) -> str:
    """Return the properties of a client that logs in with a password; `authority` is the broker's CA as PEM."""
    login = password_entry(SCRAM_MODULE, user, password)
    return f"""\
# Written by `barnabas security init`. It contains the password of {user}.
bootstrap.servers={host}:{port}
security.protocol=SASL_SSL
sasl.mechanism={MECHANISM}
sasl.jaas.config={_escaped(login)}
{_trust(authority)}"""


def client_tls_properties(host: str, port: int, user: str, keys: str, authority: str) -> str:
    """Return the properties of a client with a certificate; `keys` are its key and chain as PEM."""
    key, _, chain = keys.partition("-----BEGIN CERTIFICATE-----")
    return f"""\
# Written by `barnabas security init`. It contains the private key of {user}.
bootstrap.servers={host}:{port}
security.protocol=SSL
ssl.keystore.type=PEM
ssl.keystore.key={_lines(key)}
ssl.keystore.certificate.chain={_lines("-----BEGIN CERTIFICATE-----" + chain)}
{_trust(authority)}"""


def _trust(authority: str) -> str:
    """Return the trust store inline, so that the file can be copied to another machine."""
    return f"ssl.truststore.type=PEM\nssl.truststore.certificates={_lines(authority)}\n"


def _lines(pem: str) -> str:
    """Return a text of several lines as one value that continues over as many lines."""
    return "\\n\\\n".join(_escaped(line) for line in pem.strip().splitlines())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
