"""`barnabas console`: web pages about a cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, client_security

if TYPE_CHECKING:
    from barnabas.console.settings import ConsoleSettings

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


@click.command()
@click.option(
    "--listen",
    "listen",
    metavar="HOST:PORT",
    default="127.0.0.1:8080",
    show_default=True,
    help="Where the pages are served; port 0 takes a free one.",
)
@click.option("--host-name", "host_names", metavar="NAME", multiple=True, help="A name under which it is reached.")
@click.option(
    "--sign-in",
    "mechanism",
    type=click.Choice(_MECHANISMS, case_sensitive=False),
    help="Let people sign in with a user of the broker, by this SASL mechanism; pages show what that user may see. By "
    "default the broker's, if it asks for a login and the command has none.",
)
@click.option("--tls-certificate", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="PEM file.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="PEM file.")
@click.option(
    "--allow-changes",
    "allows_changes",
    is_flag=True,
    help="Let pages change things: settings, topics, groups' offsets, users. The broker's ACLs hold besides.",
)
@click.option(
    "--schema-registry",
    metavar="URL",
    envvar="BARNABAS_SCHEMA_REGISTRY",
    show_envvar=True,
    help="A schema registry, to show records in Avro and Protobuf. The URL may have a user and a password.",
)
@click.option("--stop-with-stdin", is_flag=True, help="Stop when standard input ends: for a parent process.")
@bootstrap_option
def console(
    listen: str,
    host_names: tuple[str, ...],
    mechanism: str | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    allows_changes: bool,
    stop_with_stdin: bool,
    schema_registry: str | None,
    bootstrap: str,
) -> None:
    """Serve web pages about a cluster of Barnabas or Apache Kafka brokers.

    Topics with their segments on a time axis, records, groups with their lag, transactions. The pages only show, unless
    the console is started with --allow-changes. Needs the extra: pip install 'barnabas[console]'.
    """
    try:
        from barnabas.console.server import ConsoleServer, run
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is missing: pip install 'barnabas[console]'") from error
    from barnabas.clients.addresses import Address, parse_address
    from barnabas.clients.config import ClientConfig
    from barnabas.commands.serving import stop_at_end_of_input
    from barnabas.console.settings import ConsoleSettings

    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key belong together")
    host, _, port = listen.rpartition(":")
    address = Address(host.strip("[]"), 0) if port == "0" else parse_address(listen)
    settings = ConsoleSettings(
        client=ClientConfig(bootstrap=bootstrap, client_id="barnabas-console", security=client_security()),
        address=address,
        sign_in_mechanism=mechanism,
        allows_changes=allows_changes,
        schema_registry=schema_registry,
    )
    if stop_with_stdin:
        threading.Thread(target=stop_at_end_of_input, name="stdin-watch", daemon=True).start()
    scheme = "http" if tls_certificate is None else "https"

    def started(bound: Address, found: ConsoleSettings) -> None:
        for sentence in _warnings(found, has_tls=tls_certificate is not None):
            click.echo(f"warning: {sentence}", err=True)
        click.echo(f"console of {bootstrap} on {scheme}://{bound}/")
        if found.sign_in_mechanism is not None and mechanism is None:
            click.echo(f"people sign in with a user of the broker ({found.sign_in_mechanism})")

    run(ConsoleServer(settings, host_names, tls_certificate, tls_key, started))


def _warnings(settings: ConsoleSettings, *, has_tls: bool) -> Iterator[str]:
    """What somebody who listens beyond this machine may not have meant."""
    address = settings.address
    if address.host == "localhost" or address.host.startswith("127.") or address.host == "::1":
        return
    if settings.sign_in_mechanism is None:
        may = (
            "see and change what the user of this console may"
            if settings.allows_changes
            else ("see what the user of this console may see")
        )
        yield (
            f"everybody who reaches {address} can {may}, because nobody signs in: add --sign-in, listen on 127.0.0.1, "
            "or have a proxy ask who they are"
        )
    elif not has_tls:
        yield (
            f"passwords travel to {address} as they are typed, unless a proxy has TLS: add --tls-certificate and "
            "--tls-key"
        )
