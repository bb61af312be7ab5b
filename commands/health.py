"""`barnabas health`: whether the broker of this machine serves. For probes that must depend on nothing else."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import PositiveNumber

if TYPE_CHECKING:
    from barnabas.config import Listener


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="BARNABAS_CONFIG",
    show_envvar=True,
    help="The broker's properties.",
)
@click.option("--set", "overrides", multiple=True, metavar="K=V", help="As for `barnabas serve`. Repeatable.")
@click.option(
    "--timeout",
    "timeout_s",
    type=PositiveNumber(),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="Limit for each step.",
)
def health(config_file: Path | None, overrides: tuple[str, ...], timeout_s: float) -> None:
    """Ask the broker of this machine whether it serves; print what /healthz says. Exit code 0: it does.

    The address is that of metrics.listener in the configuration, whose sources are those of `barnabas serve`. Proxies
    of the environment are not used. Without metrics.listener, or if it wants a client's certificate, a connection to
    the first of `listeners` has to be accepted.
    """
    from barnabas.config import ConfigError, load
    from barnabas.config.listeners import METRICS

    try:
        config = load(config_file=config_file, environ=os.environ, overrides=overrides)
    except ConfigError as error:
        raise CommandFailure(str(error), ExitCode.USAGE) from error
    metrics = config.metrics_listener
    asked = f"metrics.listener={metrics}"
    try:
        if metrics is None or (
            metrics.name == "SSL" and config.listener_properties(METRICS).get_str("ssl.client.auth") == "required"
        ):
            client_listener = config.listeners[0]
            asked = f"listeners={client_listener}"
            socket.create_connection(_address(client_listener), timeout_s).close()
            click.echo(f"{client_listener} accepts connections")
            return
        status, text = _ask(metrics, timeout_s)
    except OSError as error:
        raise CommandFailure(f"the broker does not answer at {asked}: {error}", ExitCode.NO_CONNECTION) from error
    except http.client.HTTPException as error:
        raise CommandFailure(f"{asked} does not answer by HTTP: {error!r}") from error
    if status != http.client.OK:
        raise CommandFailure(text)
    click.echo(text)


def _ask(listener: Listener, timeout_s: float) -> tuple[int, str]:
    """Return the status and the line of /healthz. Raises OSError, HTTPException."""
    host, port = _address(listener)
    if listener.name == "SSL":
        # The port is this machine's own, and its certificate need not name the loopback address.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        return response.status, response.read(1000).decode(errors="replace").strip()
    finally:
        connection.close()


def _address(listener: Listener) -> tuple[str, int]:
    if listener.port == 0:
        raise CommandFailure(f"{listener} takes a free port, which the configuration does not tell", ExitCode.USAGE)
    return ("localhost" if listener.is_every_interface else listener.host), listener.port
