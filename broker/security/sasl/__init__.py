"""Authentication of clients by SASL, before a connection's first other request and again during its life.

gate              one connection's authentication: timers, delays, and when the connection begins to serve requests
conversation      its state machine on frames, without I/O
gates             what begins the authentication of connections, by listener
setup             builds the listeners from the configuration
listener          the parts that the gates of one listener share
mechanisms        the mechanisms of a listener, by name
plain_users       the users of PLAIN, from the configuration
scram_users       the users of SCRAM, from the metadata image
session_lifetime  how long a session may last
failure_log       failed authentications in the log, a bounded number of lines
work_queue        steps that would block the event loop
"""
