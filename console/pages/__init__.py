"""The pages, one module or folder for each part of the navigation, and the table of all routes."""

from __future__ import annotations

from starlette.routing import BaseRoute

from barnabas.console.pages import (
    access,
    broker_settings,
    client_metrics,
    group_changes,
    groups,
    live,
    overview,
    topic,
    topics,
    transactions,
)

ROUTES: tuple[BaseRoute, ...] = (
    *overview.ROUTES,
    *topics.ROUTES,
    *topic.ROUTES,
    *groups.ROUTES,
    *group_changes.ROUTES,
    *transactions.ROUTES,
    *access.ROUTES,
    *broker_settings.ROUTES,
    *client_metrics.ROUTES,
    *live.ROUTES,
)
