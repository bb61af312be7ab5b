"""Driver of kcat that logs in; python/secure.py has the format."""

from __future__ import annotations

import subprocess

from tests.interop.clients.python.loop import Answer, Request, UnsupportedError, serve


def round_trip(request: Request) -> Answer:
    """Produce and consume with one run of kcat each."""
    login = request["login"]
    if login["token"]:
        raise UnsupportedError("Debian's librdkafka is built without libcurl: it takes no signed tokens")
    settings = {
        "security.protocol": "SASL_SSL" if login["mechanism"] else "SSL",
        "ssl.ca.location": login["ca"],
        "ssl.endpoint.identification.algorithm": "https",  # off by default before librdkafka 2.0
        "auto.offset.reset": "earliest",
    }
    if login["certificate"]:
        settings |= {"ssl.certificate.location": login["certificate"], "ssl.key.location": login["certificate"]}
    if login["mechanism"]:
        settings["sasl.mechanism"] = login["mechanism"]
    if login["user"]:
        settings |= {"sasl.username": login["user"], "sasl.password": login["password"]}
    shared = ["-b", request["bootstrap"], *(word for each in settings.items() for word in ("-X", "=".join(each)))]
    timeout_s = request["timeout_ms"] / 1000
    _run(["kcat", "-P", "-t", request["topic"], *shared], timeout_s, request["value"])
    # -G takes the rest of the arguments as topics.
    consumed = _run(["kcat", *shared, "-e", "-q", "-G", request["group"], request["topic"]], timeout_s)
    return {"values": consumed.splitlines()}


def _run(command: list[str], timeout_s: float, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    serve({"round": round_trip})
