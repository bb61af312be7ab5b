"""The configuration in docs/recipes, so that the pages say what the tests run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.support.daemon import REPOSITORY

RECIPES = REPOSITORY / "docs" / "recipes"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recipe(page: str, number: int = 0, /, **replaced: str) -> str:
    """Return a code block of a page, with its example values replaced; `replaced` is by the names in `EXAMPLES`.

    Raises AssertionError if an example value is not there.
    """
    text: str = _BLOCK.findall((RECIPES / page).read_text())[number][1]
    for name, value in replaced.items():
        example = EXAMPLES[name]
        assert example in text, f"{page} has no {example}"
        text = text.replace(example, value)
    return text


EXAMPLES: Mapping[str, str] = {
    "broker": "localhost:9092",
    "other_broker": "localhost:9093",
    "file": "/var/log/application.log",
    "topic": '"events"',
    "orders": "topics=orders",
    "plugins": "plugin.path=plugins",
    "offsets": "filename=offsets",
    "port": "port=5432",
}
"""Values in the pages that a test has to replace."""
