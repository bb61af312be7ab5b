"""CRC-32C of a buffer, by the crc32c package's extension module, without the rest of that package.

The package's __init__ asks importlib.metadata for its own version: 27 ms and 5 MiB, an eighth of what the broker may
take to start and of its idle memory, for a string that nobody reads. So the extension is loaded by its place; should it
not be found there, the package is imported as usual.
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
