"""A running `barnabas console`, and a client that keeps cookies and form tokens as a browser does."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from signal import SIGTERM
from typing import NamedTuple
from urllib.parse import urlencode

from tests.support.forking import REPOSITORY, ForkServer

_READY = re.compile(r"console of \S+ on https?://127\.0\.0\.1:(\d+)/")
_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')
_MODULES = ("barnabas.commands.console", "barnabas.commands.serving", "barnabas.console.server", "uvicorn.lifespan.on")
_TIMEOUT_S = 30
_POLL_S = 0.05


class Page(NamedTuple):
    """An answer of the console."""

    status: int
    headers: Mapping[str, str]
    text: str


class ConsoleClient:
    """Asks one console. `token` is that of the latest page with a form."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = ""
        self.cookies: dict[str, str] = {}

    @property
    def host(self) -> str:
        """Value of the Host header."""
        return f"127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Page:
        """Ask for a page; redirections are not followed."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Page:
        """Send a form as the console's own page would: with its token and origin, unless `headers` has another."""
        own = {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded", **headers}
        return self._ask("POST", path, urlencode({"csrf_token": self.token, **form}), own)

    def get_until(self, path: str, holds: Callable[[str], bool]) -> str:
        """Ask for a page until its text is as wanted; Kafka's controller answers before its broker knows the change."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not holds(text := self.get(path).text) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        assert holds(text), text
        return text

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Page:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_S)
        sent = {"Host": self.host, **headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or ():
            self.cookies.update({name: morsel.value for name, morsel in SimpleCookie(line).items()})
        if found := _TOKEN.search(text):
            self.token = found[1]
        return Page(answer.status, dict(answer.headers.items()), text)


def client_file(directory: Path, properties: Mapping[str, str]) -> Path:
    """Write the file for `--command-config` that trusts a broker's certificates, and has no user."""
    trusted = {name: value for name, value in properties.items() if name.startswith("ssl.")}
    trusted["security.protocol"] = "SSL"
    lines = [f"{name}={value}".replace("\\", "\\\\").replace("\n", "\\n") for name, value in trusted.items()]
    file = directory / "client.properties"
    file.write_text("\n".join(lines))
    return file


@contextmanager
def running_console(bootstrap: str, *options: str, log: Path) -> Iterator[ConsoleClient]:
    """Run `barnabas console` on a free port until the block ends."""
    arguments = ["console", "--listen", "127.0.0.1:0", "--bootstrap", bootstrap, *options]
    output, output_end = os.pipe()
    with open(output, encoding="utf-8") as lines, log.open("wb") as errors:
        process = _fork_server().start(
            arguments, environ=os.environ, cwd=str(REPOSITORY), stdout=output_end, stderr=errors.fileno()
        )
        os.close(output_end)
        try:
            line = lines.readline()
            ready = _READY.match(line)
            assert ready is not None, f"{line!r}; {log.read_text()}"
            yield ConsoleClient(int(ready[1]))
        finally:
            process.send_signal(SIGTERM)
            process.wait(_TIMEOUT_S)
            process.stdin.close()


@cache
def _fork_server() -> ForkServer:
    """Return a server with a console's modules, whose import takes longer than most tests of a console."""
    return ForkServer(*_MODULES)
