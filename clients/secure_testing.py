"""A broker with TLS and users, for tests of client programs: `barnabas.clients.testing.secure_broker`.

Its only listener is SASL_SSL, with a certificate of a new authority for localhost and 127.0.0.1. Users log in with
SCRAM-SHA-512. The first one, `admin`, is created over the network: it logs in with PLAIN, whose users are in the
configuration. So the listener offers PLAIN, too, for `admin` alone.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas.clients.broker_process import BrokerProcess
from barnabas.clients.config import AdminConfig
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.security.authority import Authority
from barnabas.clients.security.settings import SecuritySettings
from barnabas.config.security.jaas import PLAIN_MODULE, SCRAM_MODULE, password_entry
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest
from barnabas.protocol.sasl.plain import PLAIN
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_512
from barnabas.protocol.sasl.scram_upsertions import scram_upsertion

ADMIN: Final = "admin"
_HOSTS: Final = ("localhost", "127.0.0.1")
_DAYS: Final = 30
_PASSWORD_BYTES: Final = 24


class SecureBrokerProcess(BrokerProcess):
    """A broker process with a SASL_SSL listener, a user `admin` who may do everything, and users of the test.

    A second listener, SSL, takes clients with a certificate: see `issue_certificate`.

    ACLs are enforced. A resource without ACLs is open to all users (allow.everyone.if.no.acl.found=true), unless
    `settings` change that.
    """

    def __init__(
        self, directory: Path, settings: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(directory, settings, environ)
        self.ca_path = directory / "ca.pem"
        """The authority's certificate as PEM: librdkafka's ssl.ca.location."""
        self.password = secrets.token_urlsafe(_PASSWORD_BYTES)
        """The password of `admin`."""
        self.tls_port = 0
        """The port of the listener for clients with a certificate."""
        self._config_path = directory / "secure.properties"
        self._authority = Authority("Barnabas test CA", _DAYS)
        self._has_admin = False

    @property
    def client_properties(self) -> dict[str, str]:
        """Properties of a Kafka client that logs in as `admin`, with the address."""
        return self._properties(ADMIN, self.password)

    @property
    def security(self) -> SecuritySettings:
        """The login of `admin`, for Barnabas's own client."""
        return SecuritySettings.from_properties(self.client_properties)

    def add_user(self, name: str, password: str) -> dict[str, str]:
        """Create a user, or change its password; return the properties of a Kafka client that logs in as this user.

        Raises BrokerError if the broker refuses the name.
        """
        upsertion = scram_upsertion(name, SCRAM_SHA_512, password)
        request = AlterUserScramCredentialsRequest(upsertions=[upsertion])

        async def alter() -> None:
            cluster = Cluster(self._admin_config())
            try:
                answer = await cluster.ask_any(request)
                for result in answer.results:
                    if result.error is not ErrorCode.NONE:
                        raise BrokerError(result.error, result.message or result.error.name)
            finally:
                await cluster.close()

        self._run(alter())
        return self._properties(name, password)

    def issue_certificate(self, user: str) -> dict[str, str]:
        """Issue a certificate with the subject CN=`user`; return the properties of a Kafka client that presents it.

        The broker takes it for `User:<user>`, so one for `admin` may do everything.
        """
        key, certificate, authority = re.split(r"(?=-----BEGIN C)", self._authority.client(user, _DAYS))
        return {
            "bootstrap.servers": f"{self.host}:{self.tls_port}",
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": certificate + authority,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self._authority.certificate,
        }

    def command(self) -> list[str]:
        """The command line of the next start."""
        return [*super().command(), "--config", str(self._config_path)]

    def start(self) -> None:
        """Start the process, and create `admin` at the first start. Raises BrokerProcessError, BrokerError."""
        if not self._has_admin:
            self._write_files()
        super().start()
        ports = self.ready["ports"]
        assert isinstance(ports, dict)
        self.tls_port = int(ports.get("SSL", 0))
        if self._has_admin:
            return
        try:
            self.add_user(ADMIN, self.password)
        except BaseException:
            self.kill()
            raise
        self._has_admin = True

    def _listeners(self) -> str:
        return f"SASL_SSL://{self.host}:{self.port},SSL://{self.host}:{self.tls_port}"

    def _admin_config(self) -> AdminConfig:
        plain = {
            **self.client_properties,
            "sasl.mechanism": PLAIN,
            "sasl.jaas.config": password_entry(PLAIN_MODULE, ADMIN, self.password),
        }
        return AdminConfig(bootstrap=self.bootstrap, security=SecuritySettings.from_properties(plain))

    def _properties(self, user: str, password: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": SCRAM_SHA_512.name,
            "sasl.jaas.config": password_entry(SCRAM_MODULE, user, password),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self._authority.certificate,
        }

    def _write_files(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        keys = self.directory / "broker.pem"
        location = _escaped(keys)
        authority = _escaped(self.ca_path)
        _write(self.ca_path, self._authority.certificate)
        _write(keys, self._authority.server(_HOSTS, _DAYS))
        _write(
            self._config_path,
            f"""\
ssl.keystore.type=PEM
ssl.keystore.location={location}
listener.name.ssl.ssl.client.auth=required
listener.name.ssl.ssl.truststore.type=PEM
listener.name.ssl.ssl.truststore.location={authority}
ssl.principal.mapping.rules=RULE:^CN=([^,]+)$/$1/,DEFAULT
listener.name.sasl_ssl.sasl.enabled.mechanisms={SCRAM_SHA_512.name},{PLAIN}
listener.name.sasl_ssl.plain.sasl.jaas.config={PLAIN_MODULE} required user_{ADMIN}="{self.password}";
authorizer.class.name={STANDARD_AUTHORIZER}
allow.everyone.if.no.acl.found=true
super.users=User:{ADMIN}
""",
        )


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\")


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
