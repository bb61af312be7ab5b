"""Records are read, and sent, as from a disk."""

from tests.support.disk_paths import tmp_path, tmp_path_factory

__all__ = ["tmp_path", "tmp_path_factory"]
