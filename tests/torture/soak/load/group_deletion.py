"""Deletion of groups: those of earlier rounds, and some that have one offset each, of which none may come back."""

from __future__ import annotations

from barnabas import Admin, AdminConfig, ErrorCode, RefusedError, TopicPartition
from barnabas.clients.errors import ClientError
from barnabas.clients.group_offsets import CommittedOffset
from tests.torture.soak.history import Commit, GroupSeen
from tests.torture.soak.load.stage import Stage, pause

_PAUSE_S = 0.3


class GroupDeletion:
    """Deletes groups, and looks for them again. `left` are those of earlier rounds, until they are deleted."""

    def __init__(self, stage: Stage, left: set[str]) -> None:
        self._stage = stage
        self._left = left
        self._created = 0

    async def run(self) -> None:
        """Delete until the stage ends."""
        stage = self._stage
        while not stage.writers_end.is_set():
            try:
                async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
                    while not stage.writers_end.is_set():
                        await self._create(admin)
                        for group in sorted(self._left):
                            await self._delete(admin, group)
                        await self._look(admin)
                        await pause(_PAUSE_S)
            except ClientError as error:
                stage.note_error("group deletion", error)
                await pause(_PAUSE_S)

    async def _create(self, admin: Admin) -> None:
        """Commit an offset of a topic that is there until the end of the round."""
        self._created += 1
        group = f"deleted-{self._stage.seed}-{self._stage.number}-{self._created}"
        place = TopicPartition(self._stage.plain, 0)
        await admin.set_group_offsets(group, {place: CommittedOffset(self._created)})
        self._left.add(group)

    async def _delete(self, admin: Admin, group: str) -> None:
        try:
            await admin.delete_group(group)
        except RefusedError as error:
            if error.code is ErrorCode.NON_EMPTY_GROUP:
                return  # until the session of a member that could not say that it left is over
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:  # which follows an answer that was lost
                raise
        self._left.discard(group)
        self._stage.history.deleted[group] = self._stage.history.tick()

    async def _look(self, admin: Admin) -> None:
        history = self._stage.history
        began = history.tick()
        listed = {each.group_id for each in await admin.list_groups()}
        history.seen += [GroupSeen(group, began) for group in history.deleted if group in listed]
        for group in history.deleted:
            began = history.tick()
            found = await admin.group_offsets(group)
            ended = history.tick()
            history.commits += [
                Commit(group, (each.topic, each.partition), committed.offset, began, ended, is_read=True)
                for each, committed in found.items()
            ]
