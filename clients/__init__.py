"""The native asyncio client (Producer, Consumer, Admin) and, in `commands`, the `barnabas` command."""
