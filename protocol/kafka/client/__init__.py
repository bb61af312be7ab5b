"""The client's side of Kafka's dialect: requests that are sent, and answers that are read, as field tables.

One module per API; each has a `ClientApi`, by which `clients/kafka` sends requests in a version that both sides have.
"""
