"""The rows of the matrix, in their order."""

from __future__ import annotations

from tests.interop.clients.features import FEATURES
from tests.interop.clients.group_features import GROUP_FEATURES
from tests.interop.clients.transaction_features import TRANSACTION_FEATURES

ALL_FEATURES = [*FEATURES, *GROUP_FEATURES, *TRANSACTION_FEATURES]
