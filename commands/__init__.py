"""The `barnabas` command: one file a command, and what they share (failures, options, output, progress).

`main` knows the commands by name only and imports one when it runs, and a command imports what it needs inside its
function: `barnabas serve` must be up in 0.2 s and idle in 40 MiB, so it must not pay for tables or for the client.
"""
