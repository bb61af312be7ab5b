"""SCRAM: the RFCs' exchanges, Kafka's limits, and hostile messages."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.sasl.exchange import Challenge, Failure, SaslError, Step, Success, Work
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import (
    SCRAM_MECHANISMS,
    SCRAM_SHA_256,
    ScramKeys,
    ScramMechanism,
    keys_of_password,
)
from barnabas.protocol.sasl.scram_server import ScramServer, TokenLogin

SHA_1 = ScramMechanism("SCRAM-SHA-1", 0, "sha1")
"""Not served: RFC 5802's example uses it."""

USER = keys_of_password(SCRAM_SHA_256, "pencil", b"salt of alice", 4096)


class Users:
    """The users of one broker."""

    def __init__(self, users: dict[str, ScramKeys], tokens: dict[str, TokenLogin] | None = None) -> None:
        self.users = users
        self.tokens = tokens or {}

    def keys(self, user: str) -> ScramKeys | None:
        return self.users.get(user)

    def made_up(self, user: str) -> tuple[bytes, int]:
        return user.encode().ljust(30, b"."), 5000

    def token(self, token_id: str) -> TokenLogin | None:
        return self.tokens.get(token_id)


def server(users: Users | None = None, mechanism: ScramMechanism = SCRAM_SHA_256) -> ScramServer:
    return ScramServer(mechanism, users or Users({"alice": USER}), b"secret of the broker")


def log_in(client: ScramClient, scram: ScramServer) -> Step:
    """Run a whole exchange, as far as it goes."""
    step = scram.respond(client.start())
    if isinstance(step, Work):
        step = scram.resume(step.run())
    while isinstance(step, Challenge):
        answer = client.respond(step.data)
        assert answer is not None
        step = scram.respond(answer)
    return step


@pytest.mark.parametrize(
    ("mechanism", "client_nonce", "server_nonce", "salt", "final", "verdict"),
    [
        (
            SHA_1,
            "fyko+d2lbbFgONRv9qkxdawL",
            "3rfcNHYJY1ZVvWVs7j",
            "QSXCR+Q6sek8bf92",
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (
            SCRAM_SHA_256,
            "rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            "W22ZaJ0SNY7soEsUEjb6gQ==",
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ],
    ids=["RFC 5802", "RFC 7677"],
)
def test_both_sides_speak_as_in_the_rfc(
    mechanism: ScramMechanism, client_nonce: str, server_nonce: str, salt: str, final: str, verdict: str
) -> None:
    keys = keys_of_password(mechanism, "pencil", base64.b64decode(salt), 4096)
    scram = ScramServer(mechanism, Users({"user": keys}), b"", nonce=server_nonce)
    client = ScramClient(mechanism, "user", "pencil", nonce=client_nonce)

    assert client.start() == f"n,,n=user,r={client_nonce}".encode()
    first = scram.respond(client.start())
    assert first == Challenge(f"r={client_nonce}{server_nonce},s={salt},i=4096".encode())
    assert client.respond(first.data) == final.encode()
    assert scram.respond(final.encode()) == Success(verdict.encode(), "user")
    assert client.respond(verdict.encode()) is None
    assert client.is_complete


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS.values(), ids=list(SCRAM_MECHANISMS))
@pytest.mark.parametrize("user", ["alice", "a=b,c", "=2C", "CN=broker,O=x"])
def test_users_log_in(mechanism: ScramMechanism, user: str) -> None:
    keys = keys_of_password(mechanism, "pässwörd", b"salt", 4096)
    step = log_in(ScramClient(mechanism, user, "pässwörd"), server(Users({user: keys}), mechanism))
    assert isinstance(step, Success)
    assert step.user == user
    assert not step.token_authenticated


def test_a_wrong_password_and_an_unknown_user_fail_alike() -> None:
    failures = [log_in(ScramClient(SCRAM_SHA_256, user, "wrong"), server()) for user in ("alice", "nobody")]
    assert failures == [
        Failure("wrong user or password", None, "alice"),
        Failure("wrong user or password", None, "nobody"),
    ]


def test_the_salt_of_an_unknown_token_is_the_same_at_every_attempt() -> None:
    def salt(token_id: str) -> bytes:
        step = server().respond(f"n,,n={token_id},r=x,tokenauth=true".encode())
        assert isinstance(step, Challenge)
        return step.data.partition(b",s=")[2]

    assert salt("nothing") == salt("nothing") != salt("something")


def test_an_unknown_user_is_offered_the_made_up_salt_and_iterations() -> None:
    step = server().respond(b"n,,n=nobody,r=x")
    assert isinstance(step, Challenge)
    assert step.data.endswith(b",s=" + base64.b64encode(b"nobody".ljust(30, b".")) + b",i=5000")


def test_a_proof_for_the_made_up_keys_of_an_unknown_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = keys_of_password(SCRAM_SHA_256, "guess", b"salt", 4096)
    monkeypatch.setattr(ScramServer, "_made_up", lambda self, first: made_up)
    assert isinstance(log_in(ScramClient(SCRAM_SHA_256, "nobody", "guess"), server()), Failure)


def test_a_token_logs_in_as_its_owner_until_it_expires() -> None:
    token = TokenLogin("bob", 1_700_000_000_000, lambda: keys_of_password(SCRAM_SHA_256, "hmac", b"salt", 4096))
    users = Users({"id": USER}, {"id": token})

    step = log_in(ScramClient(SCRAM_SHA_256, "id", "hmac", is_token=True), server(users))
    assert isinstance(step, Success)
    assert step[1:] == ("bob", 1_700_000_000_000, True)

    for password, is_token in (("pencil", True), ("hmac", False)):
        assert isinstance(log_in(ScramClient(SCRAM_SHA_256, "id", password, is_token=is_token), server(users)), Failure)
    assert log_in(ScramClient(SCRAM_SHA_256, "other", "x", is_token=True), server(users)) == Failure(
        "wrong token or secret", None, "other"
    )


def test_a_credential_below_the_minimum_of_iterations_is_refused() -> None:
    weak = keys_of_password(SCRAM_SHA_256, "pencil", b"salt", 4095)
    step = server(Users({"alice": weak})).respond(b"n,,n=alice,r=x")
    assert step == Failure("the stored credential has fewer than 4096 iterations", None, "alice")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,m=x,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=al=ce,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a b",
        b"n,,n=alice\xff,r=x",
        b"n,,n=alice,r=x,1=2",
        b"n,,n=alice,r=x\n",
        b"n,,n=alice,r=x" + b",a=b" * 100_000 + b",",
    ],
)
def test_malformed_first_messages_fail(message: bytes) -> None:
    assert server().respond(message) == Failure("the SCRAM client-first message is malformed")


@pytest.mark.parametrize(
    ("message", "authorized"),
    [
        (b"n,a=alice,n=alice,r=x", True),
        (b"n,,n=alice,r=x,some=extension,tokenauth=false", True),
        (b"n,a=bob,n=alice,r=x", False),
        (b"n,a=bob,n=nobody,r=x", False),
    ],
)
def test_an_authorization_id_must_be_the_user(message: bytes, authorized: bool) -> None:
    step = server().respond(message)
    assert isinstance(step, Challenge) == authorized
    if isinstance(step, Failure):
        assert step.public is not None
        assert step.public.endswith("an authorization id that is different from username")


def tampered(change: Callable[[bytes], bytes]) -> Step:
    """Return the verdict on the right user's final message after `change`."""
    client, scram = ScramClient(SCRAM_SHA_256, "alice", "pencil"), server()
    step = scram.respond(client.start())
    assert isinstance(step, Challenge)
    final = client.respond(step.data)
    assert final is not None
    return scram.respond(change(final))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda final: final.replace(b",r=", b",r=x"), "the nonce of the SCRAM client-final message is another one"),
        (lambda final: final.partition(b",p=")[0], "the SCRAM client-final message is malformed"),
        (lambda final: final.partition(b",p=")[0] + b",p=", "the SCRAM proof has a wrong size"),
        (lambda final: final.partition(b",p=")[0] + b",p=AAAA", "the SCRAM proof has a wrong size"),
        (lambda final: final.replace(b"c=biws", b"c=eSws"), "wrong user or password"),
        (lambda final: final.replace(b",p=", b",x=y,p="), "wrong user or password"),
        (lambda final: final + b"\0", "the SCRAM client-final message is malformed"),
    ],
)
def test_tampered_final_messages_fail(change: Callable[[bytes], bytes], reason: str) -> None:
    assert tampered(change) == Failure(reason, None, "alice")
    assert isinstance(tampered(lambda final: final), Success)


def test_an_exchange_cannot_be_continued_after_its_end() -> None:
    client, scram = ScramClient(SCRAM_SHA_256, "alice", "pencil"), server()
    step = scram.respond(client.start())
    assert isinstance(step, Challenge)
    final = client.respond(step.data)
    assert final is not None
    assert isinstance(scram.respond(final), Success)
    assert isinstance(scram.respond(final), Failure)


@given(st.lists(st.binary(max_size=100) | st.text(max_size=100).map(str.encode), max_size=3))
def test_no_messages_raise(messages: list[bytes]) -> None:
    scram = server()
    for message in messages:
        assert isinstance(scram.respond(message), Failure | Challenge)


@settings(max_examples=30)
@given(st.binary(max_size=60))
def test_no_final_message_but_the_right_one_succeeds(message: bytes) -> None:
    assert isinstance(tampered(lambda final: final[: len(final) - len(message)] + message), Failure) or not message


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "does not extend"),
        (b"r=abc,s=c2FsdA==,i=4096", "does not extend"),
        (b"r=abcd,s=c2FsdA==,i=4095", "requests 4095 iterations"),
        (b"r=abcd,s=c2FsdA==,i=999999999", "requests 999999999 iterations"),
        (b"r=abcd,s=c2FsdA==,i=99999999999999999999", "malformed"),
        (b"e=other-error", "malformed"),
        (b"", "malformed"),
    ],
)
def test_a_client_refuses_a_bad_first_answer(answer: bytes, reason: str) -> None:
    client = ScramClient(SCRAM_SHA_256, "alice", "pencil", nonce="abc")
    client.start()
    with pytest.raises(SaslError, match=reason):
        client.respond(answer)


@pytest.mark.parametrize("answer", [b"v=AAAA", b"v=", b"e=unknown-user", b"", b"\xff"])
def test_a_client_refuses_a_server_that_does_not_prove_its_keys(answer: bytes) -> None:
    client, scram = ScramClient(SCRAM_SHA_256, "alice", "pencil"), server()
    step: Any = scram.respond(client.start())
    client.respond(step.data)
    with pytest.raises(SaslError):
        client.respond(answer)
    assert not client.is_complete


def test_keys_are_not_shown() -> None:
    assert repr(USER) == "DerivedKeys([hidden], iterations=4096)"
