"""One topic: its partitions with their segments, settings, groups that read it, records."""

from __future__ import annotations

from starlette.routing import BaseRoute

from barnabas.console.pages.topic import changes, partitions, produce, records, settings, streams

ROUTES: tuple[BaseRoute, ...] = (
    *changes.ROUTES,
    *partitions.ROUTES,
    *produce.ROUTES,
    *records.ROUTES,
    *settings.ROUTES,
    *streams.ROUTES,
)
