"""`barnabas security`: a development set-up with certificates, a user, and configurations that fit together.

security      the command line
development   what `security init` writes, in which order
properties    texts of server.properties and of the clients' files
first_user    a SCRAM credential in a new metadata log
"""
