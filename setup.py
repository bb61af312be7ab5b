"""The optional compiled kernels, which pyproject.toml cannot declare.

Each `_*.pyx` in a folder `kernels` is one. The Python code that it replaces is used when the extension could not be
built (no C compiler or no Python.h; the build prints a warning). The kernels share inline C through .pxd files, of
which those without a .pyx beside them are not compiled themselves.
"""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Through barnabas/, because a source distribution has no folders beside it.
SOURCES = sorted(
    source for folder in ("broker", "protocol") for source in Path("barnabas", folder).rglob("kernels/_*.pyx")
)

extensions = cythonize(
    [
        Extension(".".join(source.with_suffix("").parts), [str(source)], extra_compile_args=["-O3"])
        for source in SOURCES
    ],
    language_level=3,
)
for extension in extensions:
    extension.optional = True  # set here: cythonize creates new Extension objects and drops this attribute

setup(ext_modules=extensions, options={"build_ext": {"parallel": True}})  # a compiler for each core
