"""Salts and iterations of unknown SCRAM users have the form of stored ones."""

from __future__ import annotations

import re
from collections import Counter

from barnabas.broker.metadata.security.image import ScramCredential, SecurityImage
from barnabas.broker.security.sasl.scram_users import ImageScramUsers, NoTokens
from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SALT_BYTES, SCRAM_SHA_256, SCRAM_SHA_512

KAFKA_SALT = b"1c0qzg4e5m7kbf2dyx9u3vt8wa"
NAMES = [f"unknown-{number}" for number in range(200)]


def credential(salt: bytes, iterations: int) -> ScramCredential:
    return ScramCredential(salt, b"stored", b"server", iterations)


def stored(users: dict[str, ScramCredential]) -> SecurityImage:
    return SecurityImage(scram={(user, SCRAM_SHA_256.code): each for user, each in users.items()})


def users_of(image: SecurityImage, secret: bytes = b"secret") -> ImageScramUsers:
    return ImageScramUsers(SCRAM_SHA_256, lambda: image, NoTokens(), secret)


def test_without_credentials_of_the_mechanism_the_form_is_the_default() -> None:
    other = SecurityImage(
        scram={
            ("alice", SCRAM_SHA_512.code): credential(bytes(7), 9000),
            ("weak", SCRAM_SHA_256.code): credential(bytes(7), MIN_ITERATIONS - 1),
        }
    )
    for image in (SecurityImage(), other):
        salt, iterations = users_of(image).made_up("nobody")
        assert (len(salt), iterations) == (SALT_BYTES, MIN_ITERATIONS)


def test_each_form_that_is_stored_is_offered_and_no_other() -> None:
    image = stored({f"a{number}": credential(bytes(range(16)), 4096) for number in range(20)})
    image = SecurityImage(
        scram={
            **image.scram,
            **stored({f"b{number}": credential(bytes(range(70)), 8192) for number in range(20)}).scram,
        }
    )
    forms = Counter((len(salt), iterations) for salt, iterations in map(users_of(image).made_up, NAMES))
    assert forms.keys() == {(16, 4096), (70, 8192)}


def test_a_name_has_one_salt_that_depends_on_the_secret() -> None:
    image = stored({"alice": credential(bytes(16), 5000)})
    salts = {users_of(image).made_up(name)[0] for name in NAMES}
    assert len(salts) == len(NAMES)
    assert users_of(image).made_up("nobody") == users_of(image).made_up("nobody")
    assert users_of(image).made_up("nobody") != users_of(image, b"other").made_up("nobody")


def test_salts_like_those_of_kafka_are_in_its_alphabet() -> None:
    image = stored({"alice": credential(KAFKA_SALT, 4096)})
    salts = [users_of(image).made_up(name)[0] for name in NAMES]
    assert all(re.fullmatch(rb"1[0-9a-z]{25}|[1-9a-z][0-9a-z]{21,24}", salt) for salt in salts)
    assert {25, 26} <= {len(salt) for salt in salts}


def test_a_new_user_changes_the_forms_of_few_names() -> None:
    users = {f"user-{number}": credential(bytes(number + 1), 4096) for number in range(50)}
    image = stored(users)
    current = [image]
    made_up = ImageScramUsers(SCRAM_SHA_256, lambda: current[0], NoTokens(), b"secret").made_up
    before = [made_up(name) for name in NAMES]

    current[0] = stored(users | {"new": credential(bytes(60), 4096)})

    changed = [salt for old, (salt, _) in zip(before, map(made_up, NAMES), strict=True) if old[0] != salt]
    assert 0 < len(changed) < 40
    assert {len(salt) for salt in changed} <= {60}
