"""Who may do what, and how much: users, ACLs, quotas."""

from __future__ import annotations

from starlette.routing import BaseRoute

from barnabas.console.pages.access import acls, quotas, users

ROUTES: tuple[BaseRoute, ...] = (*users.ROUTES, *acls.ROUTES, *quotas.ROUTES)
