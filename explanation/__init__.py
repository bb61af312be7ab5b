"""What `barnabas explain` and the console say: sentences for people and documents for programs.

Made from a broker's answers, or from what was read of a stopped broker's directories; nothing here asks or reads.
"""
