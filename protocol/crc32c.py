"""CRC-32C of a buffer, by the crc32c package's extension module, without the rest of that package.

The package's __init__ looks up its own version by importlib.metadata: 27 ms and 5 MiB, an eighth of the broker's limits
for start time and idle memory. So the extension is loaded directly; if it is not found, the package is imported.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crc32c import crc32c
else:

    def _load():
        package = PathFinder.find_spec("crc32c")
        if package is not None and package.submodule_search_locations:
            spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
            if spec is not None and spec.loader is not None:
                extension = module_from_spec(spec)
                spec.loader.exec_module(extension)
                return extension.crc32c
        from crc32c import crc32c as imported

        return imported

    crc32c = _load()

__all__ = ["crc32c"]
