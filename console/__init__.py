"""The console: web pages about a cluster, served by `barnabas console` or within a broker.

`cluster` asks the brokers and remembers what they answered; `pages` has one module for each part of the navigation,
with its routes; `security` has sign-in, sessions and the headers; `templates` and `static` are what a browser gets.
Works on Apache Kafka, too: what only Barnabas can tell is left out there.
"""
