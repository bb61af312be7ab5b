"""`barnabas topic` and `barnabas partition`: topics, partitions, record deletion, moves between log directories."""
