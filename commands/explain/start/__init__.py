"""`barnabas explain start`: what the last start did, or what the next one would do."""
