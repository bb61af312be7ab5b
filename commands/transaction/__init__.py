"""`barnabas transaction`: the transactions of a broker's producers."""
