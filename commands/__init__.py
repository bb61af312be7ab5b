"""The `barnabas` command: a folder per group of commands, and the modules they share (failures, options, output, ...).

`main` has the commands' names only and imports one when it runs, and a command imports its dependencies inside its
function: `barnabas serve` should start in 0.2 s and idle in 40 MiB, so it must not load tables or the client.
"""
