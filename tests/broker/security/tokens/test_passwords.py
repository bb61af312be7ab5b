"""TokenPasswords: tokens are found by their HMACs, each of which is computed once."""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.security.image import DelegationToken
from barnabas.broker.security.tokens.passwords import TokenPasswords
from barnabas.config.security.secret import Secret

UNKNOWN = bytes(64)


def token(token_id: str) -> DelegationToken:
    return DelegationToken(token_id, "User:alice", "User:alice", (), 0, 1000, 1000)


def test_only_new_tokens_are_computed_and_deleted_ones_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    passwords = TokenPasswords(Secret("canary-secret"))
    hmacs = {name: passwords.of(name) for name in ("a", "b", "c")}
    computed: list[str] = []
    compute = passwords.of

    def compute_and_note(token_id: str) -> bytes:
        computed.append(token_id)
        return compute(token_id)

    monkeypatch.setattr(passwords, "of", compute_and_note)
    tokens = {name: token(name) for name in ("a", "b")}
    assert passwords.find(tokens, hmacs["a"]) == tokens["a"]
    assert sorted(computed) == ["a", "b"]

    for _ in range(3):
        assert passwords.find(tokens, UNKNOWN) is None
    assert sorted(computed) == ["a", "b"]

    changed = {"b": tokens["b"], "c": token("c")}
    assert passwords.find(changed, hmacs["a"]) is None
    assert passwords.find(changed, hmacs["b"]) == changed["b"]
    assert passwords.find(changed, hmacs["c"]) == changed["c"]
    assert sorted(computed) == ["a", "b", "c"]

    assert passwords.find(tokens, hmacs["a"]) == tokens["a"], (
        "a deleted token was forgotten, and is found when it is back"
    )
    assert computed.count("a") == 2
