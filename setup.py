"""Only what pyproject.toml cannot say: the optional compiled kernel.

Without a C compiler (or Python's headers) the extension is left out with a warning and the plain Python twin,
barnabas/protocol/records/kernel_python.py, does the same work.
"""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNEL = Path("barnabas/protocol/records/_kernel.pyx")

extensions = [Extension("barnabas.protocol.records._kernel", [str(KERNEL)], extra_compile_args=["-O3"], optional=True)]

setup(ext_modules=cythonize(extensions, language_level=3) if KERNEL.exists() else [])
