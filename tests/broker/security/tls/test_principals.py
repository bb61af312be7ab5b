"""Principals of certificates, compared with Java's X500Principal and Kafka's SslPrincipalMapper.

java.json has their answers, recorded once with Java 17 and kafka-clients 4.3.0:
  names   DER of a name, X500Principal.getName()
  rules   ssl.principal.mapping.rules, a name, SslPrincipalMapper.getName() or null, the exception's class or null
"""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.tls.distinguished_names import java_name, subject_of
from barnabas.broker.security.tls.principal_mapper import MappingRuleError, NoMatchingRuleError, PrincipalMapper

RECORDED = json.loads(Path(__file__).with_name("java.json").read_text())
LOOK_AHEAD = "(?="
"""Of Java's patterns, not of re2's: refused at the start."""


def content(name_der: str) -> bytes:
    data = bytes.fromhex(name_der)
    header = 2 if data[1] < 0x80 else 2 + (data[1] & 0x7F)
    return data[header:]


def test_names_are_javas() -> None:
    for name_der, expected in RECORDED["names"]:
        assert java_name(content(name_der)) == expected


@pytest.mark.parametrize(("rules", "name", "expected", "error"), RECORDED["rules"])
def test_rules_map_as_kafkas(rules: str, name: str, expected: str | None, error: str | None) -> None:
    if error is not None and error != "none":
        with pytest.raises(MappingRuleError):
            PrincipalMapper(rules)
    elif error == "none":
        with pytest.raises(NoMatchingRuleError, match=r"ssl\.principal\.mapping\.rules"):
            PrincipalMapper(rules).name(name)
    elif LOOK_AHEAD in rules:
        with pytest.raises(MappingRuleError, match="is not a regular expression that is served"):
            PrincipalMapper(rules)
    else:
        assert PrincipalMapper(rules).name(name) == expected


@pytest.mark.parametrize(
    "pattern", ["[a-z&&[^b]]+", "[a[bc]]+", r"\v+", "(?U:.*)", "(?i)caf\u00e9", r"(?i)\x{e9}", r"(?i)\p{L}", r"(a)\1"]
)
def test_a_pattern_that_would_mean_something_else_than_in_java_is_refused(pattern: str) -> None:
    with pytest.raises(MappingRuleError):
        PrincipalMapper(f"RULE:{pattern}/x/")


def test_the_subject_of_a_whole_certificate() -> None:
    leaf = trustme.CA().issue_cert("alice@example.org", common_name="alice", organization_name="Acme, Inc.")
    der = ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())
    subject = subject_of(der)
    assert subject.startswith("CN=alice,OU=")
    assert subject.endswith(",O=Acme\\, Inc.")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_certificate_are_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        subject_of(data)


def test_a_pattern_that_would_backtrack_takes_linear_time() -> None:
    mapper = PrincipalMapper("RULE:^CN=(a*)*b$/$1/,DEFAULT")
    name = "CN=" + "a" * 20_000
    assert mapper.name(name) == name
