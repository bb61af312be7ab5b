"""Resetting a group's offsets after a dry run, deleting a group, aborting a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.group_changes import (
    Move,
    Target,
    abort_transaction,
    commit_offsets,
    delete_group,
    plan_reset,
)
from barnabas.console.cluster.group_description import describe_group
from barnabas.console.cluster.snapshot import GroupFacts
from barnabas.console.formats import part
from barnabas.console.web import access_of, checked_form, ensure_changes, field, render
from barnabas.protocol.topic_partition import TopicPartition


async def _reset(request: Request) -> Response:
    """The form, and with a target in the query what a reset would do."""
    access = await access_of(request)
    ensure_changes(request)
    return await _reset_page(request, access)


async def _reset_page(request: Request, access: ClusterAccess, problem: str | None = None) -> Response:
    group = request.path_params["group"]
    described = await describe_group(access.kafka, group)
    facts = (await access.observer.refresh()).groups.get(group)
    committed = {} if facts is None else dict(facts.committed)
    query = request.query_params
    moves: Sequence[Move] = ()
    if query.get("target") and problem is None:
        try:
            target, number = _target_of(query.get("target", ""), query.get("number", "").strip())
            partitions = await _partitions_of(access, facts, query.get("topic", "").strip())
            moves = await plan_reset(access.kafka, committed, partitions, target, number)
        except ValueError as error:
            problem = str(error)
    return render(
        request,
        "group_reset.html",
        status=200 if problem is None else 409,
        name=group,
        described=described,
        topics=sorted({key.topic for key in committed}),
        given={each: query.get(each, "") for each in ("topic", "target", "number")},
        moves=moves,
        offsets=json.dumps([[move.partition.topic, move.partition.partition, move.new] for move in moves]),
        problem=problem,
    )


async def _partitions_of(access: ClusterAccess, facts: GroupFacts | None, topic: str) -> list[TopicPartition]:
    """All committed partitions, or those of one topic, which the group may never have read."""
    if not topic:
        found = [] if facts is None else sorted(facts.committed)
        if not found:
            raise ValueError("the group has committed no offsets: name a topic")
        return [TopicPartition(*each) for each in found]
    known = (await access.observer.snapshot()).topics.get(topic)
    if known is None:
        raise ValueError(f"there is no topic {topic!r}, or you may not see it")
    return [TopicPartition(topic, each.partition) for each in known.partitions]


def _target_of(text: str, number: str) -> tuple[Target, int]:
    """Raises ValueError."""
    try:
        target = Target(text)
    except ValueError:
        raise ValueError(f"unknown target {text!r}") from None
    if target in {Target.EARLIEST, Target.LATEST}:
        return target, 0
    if target is Target.TIME:
        return target, _time_of(number)
    digits = number.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 18
    if not is_number or (target is Target.OFFSET and number.startswith("-")):
        raise ValueError(f"{number!r} is not {'an offset' if target is Target.OFFSET else 'a number of records'}")
    return target, int(number)


def _time_of(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: write 2026-11-23T20:15 (UTC)") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


async def _commit(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    group = request.path_params["group"]
    try:
        listed = json.loads(field(form, "offsets"))
        offsets = {TopicPartition(str(topic), int(number)): int(offset) for topic, number, offset in listed}
        if not all(0 <= each.partition < 2**31 and 0 <= offset < 2**63 for each, offset in offsets.items()):
            raise ValueError("an offset or a partition is out of range")
    except (ValueError, TypeError, OverflowError):  # int(1e999)
        raise HTTPException(400, "the form's offsets cannot be read: load its page again") from None
    if (await describe_group(access.kafka, group)).members:
        return await _reset_page(request, access, "the group has members: stop them first")
    try:
        await commit_offsets(access.kafka, group, offsets)
    except RefusedError as error:
        return await _reset_page(request, access, str(error))
    await access.observer.refresh()
    return RedirectResponse(f"/groups/{part(group)}", 303)


async def _delete(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    group = request.path_params["group"]
    if field(form, "confirm") != group:
        return await _reset_page(request, access, f"type the group's name, {group}, to confirm")
    try:
        await delete_group(access.kafka, group)
    except RefusedError as error:
        return await _reset_page(request, access, str(error))
    await access.observer.refresh()
    return RedirectResponse("/groups", 303)


async def _abort(request: Request) -> Response:
    form = await checked_form(request)
    access = await access_of(request)
    await abort_transaction(access.kafka, field(form, "id"))
    return RedirectResponse("/transactions", 303)


ROUTES = (
    Route("/reset-group/{group:path}", _reset),
    Route("/reset-group/{group:path}", _commit, methods=["POST"]),
    Route("/delete-group/{group:path}", _delete, methods=["POST"]),
    Route("/abort-transaction", _abort, methods=["POST"]),
)
