"""Generator of docs/configuration.md and config/server.properties from the property tables.

python -m barnabas.config.document             prints docs/configuration.md
python -m barnabas.config.document --write     writes both, in the working directory's docs/ and config/
python -m barnabas.config.document --check     fails if one of them is outdated
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from barnabas.config import environment
from barnabas.config.property import DOUBLE_MAX, INT_MAX, LONG_MAX, Property, show
from barnabas.config.tables import unserved
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.sasl_properties import OAUTH_CALLBACK_HANDLER
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES

PAGE = Path("docs/configuration.md")
SERVER_PROPERTIES = Path("config/server.properties")

# Examples in server.properties for properties whose default is "unset".
EXAMPLES = {
    "node.id": "1",
    "log.dirs": "./barnabas-data",
    "metadata.log.dir": "./barnabas-data",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "inter.broker.listener.name": "PLAINTEXT",
    "log.roll.ms": "604800000",
    "log.roll.jitter.ms": "0",
    "log.retention.ms": "604800000",
    "log.retention.minutes": "10080",
    "log.flush.interval.ms": "1000",
    "ssl.keystore.location": "broker.pem",
    "standby.arbiter.command": "/usr/local/bin/may-take-over",
    "console.command.config": "console.properties",
    "standby.command.config": "standby.properties",
    "ssl.keystore.password": "password",
    "ssl.key.password": "password",
    "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----...",
    "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----...",
    "ssl.truststore.location": "ca.pem",
    "ssl.truststore.password": "password",
    "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----...",
    "sasl.jaas.config": ('org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="password";'),
    "sasl.server.callback.handler.class": OAUTH_CALLBACK_HANDLER,
    "sasl.oauthbearer.jwks.endpoint.url": "https://login.example.com/.well-known/jwks.json",
    "sasl.oauthbearer.expected.issuer": "https://login.example.com",
    "delegation.token.secret.key": "password",
    "early.start.listeners": "CONTROLLER",
}

# Kafka's properties whose type, default, rule or update mode differs from Kafka 4.3, and why.
DIFFERENCES = {
    "node.id": "optional: a first start takes 1, later ones the id in the data directory",
    "process.roles": "optional: there is only one way to run",
    "controller.listener.names": "optional: no controller listener is opened",
    "listeners": "open on the loopback address only, read at start, NAME:// is optional",
    "listener.security.protocol.map": "read at start",
    "log.dir": "./barnabas-data, not /tmp/kafka-logs, which many machines clear at boot",
    "num.recovery.threads.per.data.dir": "read at start",
    "socket.send.buffer.bytes": "at least -1; Kafka checks nothing",
    "socket.receive.buffer.bytes": "at least -1; Kafka checks nothing",
    "log.segment.bytes": "from 1024; Apache Kafka 4.x refuses less than 1048576, 3.9 less than 14",
    "group.initial.rebalance.delay.ms": "0, not 3000, so that a consumer starts without delay; at least 0",
    "group.min.session.timeout.ms": "at least 1; Kafka checks nothing",
    "group.max.session.timeout.ms": "at least 1; Kafka checks nothing",
    "group.coordinator.rebalance.protocols": "share is accepted without effect",
    "group.consumer.assignors": "only uniform and range; Kafka loads others by class name",
    "group.consumer.assignment.interval.ms": "0, not 1000, so that a new member need not wait; read at start",
    "group.share.assignors": "only simple; Kafka loads others by class name",
    "group.share.assignment.interval.ms": "0, not 1000, so that a new member need not wait; read at start",
    "group.streams.assignment.interval.ms": "read at start",
    "offsets.topic.compression.codec": "0 to 4; Kafka checks nothing before it starts",
    "log.cleaner.threads": "at least 1; Kafka divides by it and fails on 0",
    "log.cleaner.io.buffer.load.factor": "0 to 1; Kafka checks nothing",
    "log.flush.interval.ms": "at least 0; Kafka checks nothing",
    "log.flush.scheduler.interval.ms": "at least 1; Kafka checks nothing",
    "log.roll.ms": "at least 1, checked elsewhere in Kafka",
    "log.roll.jitter.ms": "at least 0, checked elsewhere in Kafka",
    "replica.high.watermark.checkpoint.interval.ms": "at least 1; Kafka checks nothing",
    "authorizer.class.name": "only Kafka's StandardAuthorizer; other classes are refused",
    "principal.builder.class": "only Kafka's default; other classes are refused",
    "sasl.server.callback.handler.class": "only Kafka's validator of OAUTHBEARER tokens; other classes are refused",
    "sasl.oauthbearer.jwt.validator.class": "only Kafka's own validators; other classes are refused",
    "sasl.oauthbearer.clock.skew.seconds": "at least 0; Kafka checks nothing",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "at least 1; Kafka checks nothing",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "at least 0; Kafka checks nothing",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "at least 0; Kafka checks nothing",
    "sasl.server.max.receive.size": "at least 1; counts as 160 KiB with OAUTHBEARER, else 16 KiB, if larger",
    "ssl.protocol": "TLSv1.2, TLSv1.3 or TLS; Kafka takes any name that Java has",
    "ssl.enabled.protocols": "TLSv1.2 and TLSv1.3 only",
    "config.providers": "read at start",
    "max.connections.per.ip.overrides": "host:number entries; Kafka checks them later",
}
TOPIC_DIFFERENCES = {
    "segment.bytes": "as log.segment.bytes",
}

_INTRODUCTION = """\
# Configuration

Written by `make docs` from the tables in `config/`; do not edit. `barnabas config list` prints the same.

Names, types, defaults and rules are Apache Kafka 4.3's, except for
[the differences below](#where-barnabas-differs-from-kafka), so an existing `server.properties` works here too. Pass it
with `--config FILE`; [config/server.properties](../config/server.properties) is a commented example with every
property at its default.

## Where a value comes from

Each layer overrides those before it:

1. the default,
2. the file of `--config` (or `BARNABAS_CONFIG`), a Java .properties file; the last entry of a name wins,
3. the environment: `BARNABAS_` and the name in upper case with `_` for `.`, so `BARNABAS_LOG_RETENTION_MS` is
   `log.retention.ms`,
4. `--set name=value`, as often as needed,
5. the dynamic default for all brokers (`barnabas config alter --all-brokers`),
6. the dynamic value of this broker (`barnabas config alter --broker ID`),
7. for a topic: its own value (`barnabas topic create --config`, `barnabas topic alter`).

Dynamic values and topics' values are stored in the metadata log and override the file at the next start, as in Kafka.

Some values have several names, in different units. **The finest unit that is set in any layer wins**, as in Kafka:
`log.retention.ms` in the file beats `log.retention.hours` given with `--set`. Barnabas warns at start if a different
value is overridden that way.

## Refused settings and warnings

If a setting is refused, the broker does not start, and one sentence names the property and its origin:

    log.segment.bytes=12x in server.properties line 7: not an int
    log.segmnt.bytes in --set: no such property; did you mean log.segment.bytes?
    BARNABAS_LOG_DIRR in the environment: no such property; did you mean BARNABAS_LOG_DIRS (log.dirs)?
    retention.ms in server.properties line 3: a property of topics; the broker's is log.retention.ms

Refused combinations: node.id and broker.id that differ; two data directories that are equal or nested; listeners that
share a name or a port, that have no security protocol, or that all belong to controllers; advertised.listeners with a
name that is not opened, or 0.0.0.0; a broker retention of 0; log.cleaner.min.compaction.lag.ms above the maximum;
1 MiB or less of log.cleaner.dedupe.buffer.size for each cleaner thread; log.cleaner.io.max.bytes.per.second or
log.cleaner.io.buffer.load.factor of 0 or less; process.roles without broker.

A property of Kafka 3.7 to 4.3 that Barnabas does not serve is accepted, kept, and named in one warning at start
([all of them](#kafkas-properties-that-barnabas-does-not-serve)). Those that restrict access are named in a
separate warning. A class of one's own (authorizer, principal builder, quota callback, SSL engine, callback handler) is
refused.

These variables are not properties:
{reserved},
and those that begin with `{test_prefix}`. Nor are the clients' properties that commands read from variables
(`BARNABAS_SECURITY_PROTOCOL`, `BARNABAS_SASL_MECHANISM`, `BARNABAS_SASL_JAAS_CONFIG` and others). Kubernetes and Docker
set variables like `BARNABAS_SERVICE_HOST` and `BARNABAS_PORT_9092_TCP` for a service named `barnabas`; they are
ignored.

## Stored values that are not understood

The metadata log may have a dynamic value or a topic's that is illegal here, because another program stored it under
other rules. The broker starts and warns about it. If the property decides about deletion (`cleanup.policy`,
`retention.*`, `segment.*`, `*.compaction.lag.ms`, `message.timestamp.*` and the others that retention and compaction
read), the topics that take the value are kept: nothing is deleted from them by time or size, and they are not
compacted, until the value is legal or removed. `barnabas explain` and the console's overview name it. For another
property the next layer's value is used. The dynamic values of a refused combination are such values, for example a
stored log.cleaner.min.compaction.lag.ms above the maximum in the file.

## Passwords and references

Passwords and keys (type password) are never shown: not in logs, errors, metrics or `barnabas config describe`. A value
may refer to a config provider: `${provider:path:key}`. `config.providers` names the providers, and
`config.providers.<name>.class` their classes, in the package `org.apache.kafka.common.config.provider`:

| class | reference | value | parameter |
|---|---|---|---|
| `FileConfigProvider` | `${file:/etc/barnabas/secrets:key}` | entry of a .properties file | `allowed.paths` |
| `DirectoryConfigProvider` | `${dir:/run/secrets:key}` | contents of a file | `allowed.paths` |
| `EnvVarConfigProvider` | `${env:NAME}` | environment variable | `allowlist.pattern`, in RE2's syntax |

Parameters are `config.providers.<name>.param.allowed.paths` and so on. A reference that cannot be resolved is refused.
(Kafka keeps its text.) `barnabas config describe` shows the reference. While the broker runs, only passwords can be set
to a reference, because whoever may alter configs could otherwise read the provider's secrets. A provider reads regular
files of up to 1 MiB; key stores and trust stores may have 16 MiB. Quote a reference in a `sasl.jaas.config`,
as in `user_alice="${file:/etc/barnabas/secrets:alice}"`: its value is escaped there, so a password may contain quotes
and backslashes and needs no escapes of its own. (Kafka inserts it as it is.)

## Listeners

`listeners` takes `host:port` or `NAME://host:port`, comma-separated: `127.0.0.1:9092`, `[::1]:9092`,
`INSIDE://10.0.0.5:9092,OUTSIDE://0.0.0.0:19092`. The default name is `PLAINTEXT`. An empty host and 0.0.0.0 mean
every interface; port 0 is a free port, and the metrics then take a free port too, unless metrics.listener is set. A
name other than PLAINTEXT needs an entry in `listener.security.protocol.map`: `INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT`.
Listeners named in `controller.listener.names` are read and not opened.

A property that is marked *per listener* takes the prefix `listener.name.<listener>.`, the name in lower case:
`listener.name.outside.ssl.keystore.location` overrides `ssl.keystore.location`. One that is marked *per mechanism* also
takes `listener.name.<listener>.<mechanism>.`. A prefix that fits no listener causes a warning. The metrics listener is
called METRICS. [security.md](security.md) shows complete examples.

Clients get the address in `advertised.listeners` for the listener that they connect to. If it is unset, they get the
listener's own address, or, if that is every interface, the address at which they reached the broker. (Kafka refuses
0.0.0.0 in that case, and advertises the machine's host name for an empty host.) Set it if addresses are translated, as
with published container ports.

## Reading the tables

*Changes*: `start`, read when the broker starts; `running`, may also be changed at run time (Kafka's cluster-wide and
per-broker update modes), key stores and trust stores with a listener's prefix only. A *topic* name overrides the
property for one topic. Types: int is 32 bits, long 64, lists are comma-separated, all times are in the unit of the
name, all sizes in bytes.
"""


def render_page() -> str:
    """Return the text of docs/configuration.md."""
    reserved = ", ".join(f"`{name}`" for name in sorted(environment.RESERVED))
    introduction = _INTRODUCTION.replace("{reserved}", reserved).replace("{test_prefix}", environment.RESERVED_PREFIX)
    parts = [introduction, "\n## Properties of the broker\n"]
    for group, members in _groups(BROKER_PROPERTIES.values()):
        parts.append(
            f"\n### {group}\n\n| property | type | default | changes | what it does |\n|---|---|---|---|---|\n"
        )
        parts.extend(_broker_row(each) for each in members)
    parts.append(
        "\n## Properties of a topic\n\n"
        "Their defaults come from the broker's properties, the first one that is set. All may be changed at run "
        "time.\n\n"
        "| property | type | the broker's name | default | what it does |\n|---|---|---|---|---|\n"
    )
    parts.extend(_topic_row(each) for each in TOPIC_PROPERTIES.values())
    parts.append("\n## Where Barnabas differs from Kafka\n\n| property | here |\n|---|---|\n")
    parts.extend(f"| `{name}` | {why} |\n" for name, why in (DIFFERENCES | TOPIC_DIFFERENCES).items())
    parts.append(
        "| `client.metrics.enable`, `console.*`, `metrics.listener`, `read.only`, `standby.*`, `initial.features`, "
        "`ssl.handshake.timeout.ms`, "
        "`sasl.authentication.timeout.ms`, `audit.log.path`, `audit.log.grants`, `audit.log.max.bytes`, "
        "`audit.log.max.lines.per.second` | not in Kafka |\n"
    )
    parts.append("\n## Kafka's properties that Barnabas does not serve\n\nAccepted and kept, without effect.\n")
    parts.append(_unserved("broker", unserved.UNSERVED_PROPERTIES.items()))
    prefixes = ", ".join(f"`{prefix}*`" for prefix in unserved.UNSERVED_PREFIXES)
    parts.append(f"\n**Of the broker, any name that begins with:** {prefixes}\n")
    parts.append(_unserved("topic", unserved.UNSERVED_TOPIC_PROPERTIES.items()))
    return "".join(parts)


def render_server_properties() -> str:
    """Return the text of config/server.properties."""
    lines = [
        "# Barnabas's configuration: every property with its default. Remove the # before a property to change it.",
        "# Use it: barnabas serve --config config/server.properties",
        "#",
        "# The names are Apache Kafka's; a Kafka server.properties works here too. The environment overrides this file",
        "# (BARNABAS_LOG_RETENTION_MS is log.retention.ms), and --set name=value over both. See",
        "# docs/configuration.md. Written by `make docs`.",
    ]
    for group, members in _groups(BROKER_PROPERTIES.values()):
        lines += ["", "#" * 4 + f" {group} " + "#" * (113 - len(group)), ""]
        for each in members:
            lines += textwrap.wrap(each.doc, 118, initial_indent="# ", subsequent_indent="# ")
            facts = [each.rule] if each.rule else []
            if each.topic_name:
                facts.append(f"a topic's {each.topic_name} overrides it")
            if each.default is None:
                facts.append("unset by default, this is an example")
            lines += [f"# {each.type.value}" + "".join(f"; {fact}" for fact in facts)]
            value = EXAMPLES[each.name] if each.default is None else show(each.default)
            lines += [f"#{each.name}={value}", ""]
        lines.pop()
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    rendered = {PAGE: render_page(), SERVER_PROPERTIES: render_server_properties()}
    if not arguments:
        sys.stdout.write(rendered[PAGE])
        return 0
    if arguments == ["--write"]:
        for path, text in rendered.items():
            path.write_text(text, encoding="utf-8")
        return 0
    if arguments == ["--check"]:
        stale = [path for path, text in rendered.items() if not path.is_file() or path.read_text("utf-8") != text]
        for path in stale:
            sys.stderr.write(f"{path} is not current: run `make docs`\n")
        return 1 if stale else 0
    sys.stderr.write(f"{__doc__}\n")
    return 2


def _groups(properties: Iterable[Property]) -> Iterable[tuple[str, list[Property]]]:
    for group, members in groupby(properties, key=lambda each: each.group):
        yield group, list(members)


def _broker_row(each: Property) -> str:
    changes = "running" if each.is_dynamic else "start"
    topic = f" Topic: `{each.topic_name}`." if each.topic_name else ""
    if each.per_listener:
        topic += " *Per listener" + (" and per mechanism.*" if each.per_mechanism else ".*")
    return f"| `{each.name}` | {_type(each)} | {_default(each)} | {changes} | {_cell(each.doc)}{topic} |\n"


def _topic_row(each: Property) -> str:
    synonyms = ", ".join(f"`{synonym.name}`" for synonym in each.synonyms) or "none"
    return f"| `{each.name}` | {_type(each)} | {synonyms} | {_default(each)} | {_cell(each.doc)} |\n"


def _type(each: Property) -> str:
    return each.type.value + (f": {_cell(each.rule)}" if each.rule else "")


def _default(each: Property) -> str:
    if each.default is None:
        return "unset"
    if each.default in (LONG_MAX, DOUBLE_MAX):
        return "no limit"
    if each.default == INT_MAX:
        return f"no limit ({INT_MAX})"
    text = show(each.default)
    return f"`{text}`" if text else "empty"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _unserved(scope: str, versions_by_name: Iterable[tuple[str, str]]) -> str:
    names_by_versions: dict[str, list[str]] = {}
    for name, versions in versions_by_name:
        names_by_versions.setdefault(versions, []).append(f"`{name}`")
    return "".join(
        f"\n**Of the {scope}, Kafka {versions}:** {', '.join(names)}\n" for versions, names in names_by_versions.items()
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
