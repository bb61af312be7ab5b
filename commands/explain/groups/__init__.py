"""`barnabas explain group`: lag, what retention deletes unread, and why the group rebalances."""
