"""Entry point of the program `barnabas`: Ctrl-C while its modules are being imported ends it without a traceback, too.

So nothing is imported at the top. `main` handles later interrupts.
"""

from __future__ import annotations


def main() -> None:
    """Run the command. Always raises SystemExit."""
    try:
        from barnabas.commands.main import main as command

        command(prog_name="barnabas")
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # ExitCode.INTERRUPTED, whose import may be the interrupted one
