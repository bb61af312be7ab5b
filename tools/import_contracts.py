"""A kind of import-linter contract for the rows of the import table in docs/architecture.md.

import-linter's own kinds forbid named modules. A row of the table names the allowed imports, so that it also applies
to modules added later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

_FROM = re.compile(r"from\s+([\w.]+)\s+import\s+(.*)")


def is_within(module: str, package: str) -> bool:
    """Return whether `module` is `package` or inside it."""
    return module == package or module.startswith(package + ".")


def imports_of(graph: ImportGraph, importer: str) -> Iterator[tuple[str, int]]:
    """Yield the direct imports of `importer`, with their lines.

    The graph contains only Python files and attributes every other import (a compiled module, a name defined in
    `__init__.py`) to the root package; for those, the import statement's text names the module.
    """
    for imported in sorted(graph.find_modules_directly_imported_by(importer)):
        for detail in graph.get_import_details(importer=importer, imported=imported):
            statement = None if "." in imported else _FROM.match(str(detail["line_contents"]))
            if statement is None:
                yield imported, int(detail["line_number"])
            elif statement[1] != imported:
                yield statement[1], int(detail["line_number"])
            else:
                for name in statement[2].strip("() ").split(","):
                    yield f"{imported}.{name.strip()}", int(detail["line_number"])


class MayImport(Contract):
    """Of our own modules, those in `package` may directly import only themselves and those in `allowed`.

    The packages in `apart` are inside `package` and have a contract of their own. The version,
    `barnabas.__version__`, is allowed everywhere.
    """

    type_name = "may_import"

    package = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())
    apart = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find every direct import out of `package` that its row does not allow."""
        package, root = str(self.package), str(self.package).partition(".")[0]
        allowed = (package, f"{root}.__version__", *(str(name) for name in self.allowed))  # type: ignore[attr-defined]
        apart: list[str] = [str(name) for name in (vars(self)["apart"] or ())]
        findings = []
        for importer in sorted(graph.modules):
            if not is_within(importer, package) or any(is_within(importer, name) for name in apart):
                continue
            for imported, line in imports_of(graph, importer):
                if is_within(imported, root) and not any(is_within(imported, name) for name in allowed):
                    findings.append((importer, imported, line))
        return ContractCheck(kept=not findings, metadata={"findings": findings})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per finding."""
        for importer, imported, line in check.metadata["findings"]:
            output.print_error(f"{importer} imports {imported} (line {line})", bold=False)
        output.new_line()
