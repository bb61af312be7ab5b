"""`python -m barnabas` is the `barnabas` command."""

from barnabas.commands.entry import main

if __name__ == "__main__":
    main()
