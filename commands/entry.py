"""Where the program `barnabas` begins: a Ctrl-C while its modules are being imported ends it without a traceback, too.

So nothing is imported up here. Interrupts that come later are `main`'s.
"""

from __future__ import annotations


def main() -> None:
    """Run the command; ends with SystemExit always."""
    try:
        from barnabas.commands.main import main as command

        command(prog_name="barnabas")
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # ExitCode.INTERRUPTED, whose module may be what was being imported
