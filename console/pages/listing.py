"""Listing: one page of a table that is searched, sorted and cut by parameters of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

ROWS_A_PAGE: Final = 100

Row = TypeVar("Row")


class Listing(Generic[Row]):
    """Rows of one page. `sort` is the name of a key, `total` the number of rows that match the search."""

    def __init__(
        self,
        rows: Iterable[Row],
        parameters: QueryParams,
        keys: Mapping[str, Callable[[Row], Any]],
        text: Callable[[Row], str],
    ) -> None:
        """Search in `text`, sort by one of `keys` (the first is the default; None sorts last), cut the page."""
        self._parameters = dict(parameters)
        self.search = parameters.get("search", "").strip()
        names = list(keys)
        self.sort = parameters.get("sort", names[0])
        if self.sort not in keys:
            self.sort = names[0]
        self.descending = parameters.get("order") == "desc"
        found = [row for row in rows if self.search.casefold() in text(row).casefold()]
        key = keys[self.sort]
        known = [row for row in found if key(row) is not None]
        known.sort(key=key, reverse=self.descending)
        found = known + [row for row in found if key(row) is None]
        self.total = len(found)
        self.pages = max(1, -(-self.total // ROWS_A_PAGE))
        self.page = min(_number(parameters.get("page", "1")), self.pages)
        first = (self.page - 1) * ROWS_A_PAGE
        self.rows: Sequence[Row] = found[first : first + ROWS_A_PAGE]

    def link(self, **changed: str | int) -> str:
        """Return the query with changes. The sorted column's link turns the order round."""
        query = {**self._parameters, **{name: str(value) for name, value in changed.items()}}
        if "sort" in changed:
            query.pop("page", None)
            is_turned = changed["sort"] == self.sort and not self.descending
            query["order"] = "desc" if is_turned else "asc"
        return urlencode(query)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 and int(text) > 0 else 1
