"""A contract for import-linter that reads like a row of the import table in docs/architecture.md.

import-linter's own kinds forbid named modules; a row names what is allowed, and a module that is added later must
fall under it by itself.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


def is_within(module: str, package: str) -> bool:
    """Whether `module` is `package` or lies in it."""
    return module == package or module.startswith(package + ".")


class MayImport(Contract):
    """Of our own modules, those in `package` may directly import only themselves and those in `allowed`.

    `except` leaves out a part of `package` that has a row of its own.
    """

    type_name = "may_import"

    package = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())
    # A field's name is its option's name, and `except` is a keyword.
    locals()["except"] = fields.StringField(required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find every direct import out of `package` that its row does not allow."""
        package, root = str(self.package), str(self.package).partition(".")[0]
        allowed = (package, *(str(name) for name in self.allowed))  # type: ignore[attr-defined]
        left_out = getattr(self, "except")
        findings = []
        for importer in sorted(graph.modules):
            if not is_within(importer, package) or (left_out and is_within(importer, str(left_out))):
                continue
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                if is_within(imported, root) and not any(is_within(imported, name) for name in allowed):
                    lines = [
                        int(detail["line_number"])
                        for detail in graph.get_import_details(importer=importer, imported=imported)
                    ]
                    findings.append((importer, imported, lines))
        return ContractCheck(kept=not findings, metadata={"findings": findings})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per finding."""
        for importer, imported, lines in check.metadata["findings"]:
            output.print_error(f"{importer} imports {imported} (line {', '.join(map(str, lines))})", bold=False)
        output.new_line()
