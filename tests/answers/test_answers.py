"""The answers of every API are those that were recorded, byte for byte.

Clock, ids, seeds, ports and disk sizes are fixed (tests/support/answers/fixed.py), so nothing in an answer is masked.
A case's first recording is made by `ANSWERS=write`; after that its bytes change only with a line in
accepted.md that names the case, the new bytes and the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from barnabas.protocol.kafka.apis import KAFKA_APIS
from tests.support.answers.brokers import start_broker
from tests.support.answers.coverage import SOME_VERSIONS, UNRECORDED, handler_codes, handler_modules
from tests.support.answers.differences import accepted, describe, digest
from tests.support.answers.play import CLOSED, Exchange, Play, answer_codes, parse, render
from tests.support.answers.requests import versions
from tests.support.answers.scripts import SCRIPTS, play_room

RECORDED = Path(__file__).parent / "recorded"
ACCEPTED = Path(__file__).parent / "accepted.md"
WRITES = os.environ.get("ANSWERS") == "write"


def recorded(room: str, api: str) -> list[Exchange]:
    file = RECORDED / room / f"{api}.txt"
    return parse(file.read_text()) if file.exists() else []


@cache
def all_recorded() -> dict[str, list[Exchange]]:
    """Return the exchanges of every API."""
    found: dict[str, list[Exchange]] = {}
    for file in sorted(RECORDED.glob("*/*.txt")):
        found.setdefault(file.stem, []).extend(parse(file.read_text()))
    return found


@pytest.mark.parametrize("room", sorted(SCRIPTS))
def test_answers_are_those_recorded(room: str, tmp_path: Path) -> None:
    with start_broker(tmp_path, room) as daemon:
        with Play(daemon) as play:
            play_room(room, play)
        assert "Traceback" not in daemon.log
    reasons = accepted(ACCEPTED.read_text())
    played: dict[str, list[Exchange]] = {}
    for each in play.exchanges:
        played.setdefault(each.api, []).append(each)
    complaints = [line for api, exchanges in played.items() for line in compare(room, api, exchanges, reasons)]
    assert not complaints, "\n".join(complaints)


def compare(room: str, api: str, exchanges: Sequence[Exchange], reasons: dict[str, str]) -> list[str]:
    """Return the differences; with WRITES, record what is new or accepted."""
    before = {each.name: each for each in recorded(room, api)}
    complaints = []
    for each in exchanges:
        old = before.pop(each.name, None)
        if old == each or (WRITES and (old is None or reasons.get(each.name) == digest(each))):
            continue
        complaints.append(describe(old, each))
    if before:
        complaints.append(f"{api}: recorded, but no longer asked: {', '.join(before)}")
    if WRITES and not complaints:
        (RECORDED / room).mkdir(parents=True, exist_ok=True)
        (RECORDED / room / f"{api}.txt").write_text(render(exchanges))
    return complaints


def test_every_version_of_every_api_has_a_recorded_answer() -> None:
    found = {(api, each.version) for api, exchanges in all_recorded().items() for each in exchanges}
    missing = [
        f"{api.key.label} v{version}"
        for api in KAFKA_APIS
        for version in range(api.lowest, api.highest + 1)
        if (api.key.label, version) not in found
    ]
    assert not missing


def test_every_error_code_of_a_handler_is_recorded_or_listed_with_a_reason() -> None:
    seen = {
        api: {code for each in exchanges for code in answer_codes(each)} for api, exchanges in all_recorded().items()
    }
    unrecorded = {
        (module, code)
        for module, apis in handler_modules().items()
        for code in handler_codes(module) - set().union(*(seen.get(api, set()) for api in apis))
    }
    assert unrecorded == {(module, code) for module, listed in UNRECORDED.items() for code in listed}


def test_every_recorded_error_code_is_recorded_in_every_version_or_listed_with_a_reason() -> None:
    found: dict[tuple[str, str], set[int]] = {}
    for exchanges in all_recorded().values():
        for each in exchanges:
            if each.version in versions(each.api):
                for code in answer_codes(each) - {CLOSED}:
                    found.setdefault((each.api, code), set()).add(each.version)
    wanted = {(api, code): set(versions(api)) for api, code in found}
    for api, codes in SOME_VERSIONS.items():
        for code, some in codes.items():
            wanted[api, code] = {each for each in versions(api) if some.first <= each <= some.last}
    differing = {each: (sorted(found.get(each, ())), sorted(wanted[each])) for each in wanted}
    assert not {each: pair for each, pair in differing.items() if pair[0] != pair[1]}


def test_every_accepted_difference_names_a_recorded_case_and_its_bytes() -> None:
    now = {each.name: digest(each) for exchanges in all_recorded().values() for each in exchanges}
    for name, value in accepted(ACCEPTED.read_text()).items():
        assert now.get(name) == value, f"{name}: accepted as {value}, recorded as {now.get(name)}"


def test_a_difference_is_named_with_its_field() -> None:
    old = next(each for each in recorded("groups", "heartbeat") if each.case == "success" and each.version == 4)
    new = old._replace(answer=re.sub("0000(00)$", r"0019\1", old.answer))
    said = describe(old, new)
    assert said.startswith("heartbeat v4 success:")
    assert "answer error_code: none -> unknown_member_id" in said
    assert f"- heartbeat v4 success {digest(new)}: " in said


def test_a_changed_answer_is_written_only_when_it_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(globals(), "RECORDED", tmp_path)
    monkeypatch.setitem(globals(), "WRITES", True)
    old = Exchange("heartbeat", 4, "success", "00", "01")
    new = old._replace(answer="02")
    assert compare("groups", "heartbeat", [old], {}) == []
    assert compare("groups", "heartbeat", [new], {}) != []
    assert recorded("groups", "heartbeat") == [old]
    assert compare("groups", "heartbeat", [new], accepted(f"- {new.name} {digest(new)}: Kafka answers so")) == []
    assert recorded("groups", "heartbeat") == [new]
