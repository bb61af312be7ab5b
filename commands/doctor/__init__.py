"""`barnabas doctor`: what keeps a client from a broker, and who can open a log directory."""
