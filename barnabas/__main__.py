"""`python -m barnabas` is the `barnabas` command."""

from barnabas.clients.commands.main import main

if __name__ == "__main__":
    main(prog_name="barnabas")
