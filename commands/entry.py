"""Entry point of the program `barnabas`: Ctrl-C while its modules are being imported ends it without a traceback, too.

So nothing of ours is imported at the top. The functions that are called handle later interrupts.
"""

from __future__ import annotations

import gc
import os
import sys

_GC_THRESHOLD = 100_000
"""Objects that are new since the last collection, when the next one begins."""


def main() -> None:
    """Run the command. Always raises SystemExit."""
    try:
        if sys.argv[1:2] == ["serve"]:
            _serve()
        elif sys.argv[1:2] != ["console"]:
            # Imports, and the records that `produce` and `consume` hold, are hardly ever part of a cycle: at the
            # default threshold the collections take a sixth of a start and a quarter of `consume`. Not in a process
            # that goes on for months.
            gc.set_threshold(_GC_THRESHOLD)
        from barnabas.commands.main import main as command

        command(prog_name="barnabas")
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # ExitCode.INTERRUPTED, whose import may be the interrupted one


def _serve() -> None:
    """Serve without click, whose import is a tenth of a start; return if click has to parse the arguments."""
    # Until the logs are loaded (Node._open_storage): the collections during the imports take a tenth of the start and
    # free nothing.
    gc.disable()
    from barnabas.commands.serve_arguments import parse_plain

    arguments = parse_plain(sys.argv[2:], os.environ)
    if arguments is not None:
        from barnabas.commands.serving import serve_and_exit

        serve_and_exit(arguments)
    gc.enable()
