"""Record batches and requests, encoded before a measurement starts."""
