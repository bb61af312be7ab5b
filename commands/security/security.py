"""`barnabas security ...`: set up TLS, a user and ACLs for development."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_HOSTS = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORT = 9092
DEFAULT_DAYS = 365


@click.group()
def security() -> None:
    """Set up TLS, a user and ACLs for development."""


@security.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    default=DEFAULT_HOSTS,
    show_default=True,
    help="Names and addresses by which clients reach the broker, for its certificate; the first one is advertised. "
    "Repeatable.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 for every interface.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65534),
    metavar="PORT",
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of the SASL_SSL listener; the SSL listener gets the next one.",
)
@click.option(
    "--user", metavar="NAME", default="admin", show_default=True, help="The first user, who may do everything."
)
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the first user's password. Without it a random one is generated.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=DEFAULT_DAYS,
    show_default=True,
    help="Days until the certificates expire; the authority's is valid ten times as long.",
)
def init(
    directory: Path, hosts: tuple[str, ...], listen: str, port: int, user: str, password_file: Path | None, days: int
) -> None:
    """Create DIR with a certificate authority, certificates, a first user and configurations that fit together.

    Writes ca.pem, ca-key.pem, broker.pem, client.pem, server.properties, client.properties (SASL_SSL with
    SCRAM-SHA-512), client-tls.properties (the certificate of the same user), and data, the log directory with the
    user. Files are readable by their owner only. An existing DIR must be empty. For development: the authority's key
    is in DIR, too.
    """
    from barnabas.commands.output import print_line
    from barnabas.commands.security.development import Wishes, create

    create(directory, Wishes(hosts, listen, port, user, password_file, days))
    print_line(f"created {directory}")
    print_line(f"start the broker:  barnabas serve --config {directory / 'server.properties'}")
    print_line(f"connect to it:     {directory / 'client.properties'} (Kafka's tools: --command-config)")
