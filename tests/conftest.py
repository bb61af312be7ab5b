"""What must happen before any test module is imported."""

from __future__ import annotations

import pytest

# Its assertions are those of several test modules, whichever of them is collected first.
pytest.register_assert_rewrite("tests.interop.clients.features")
