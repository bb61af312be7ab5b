"""The jobs of `barnabas pipeline`: each a pure transformation on DataFrames, and a `run` over it."""
