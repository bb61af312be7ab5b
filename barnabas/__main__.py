"""`python -m barnabas` is the `barnabas` command."""

from barnabas.clients.commands.entry import main

if __name__ == "__main__":
    main()
