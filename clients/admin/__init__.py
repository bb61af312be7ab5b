"""The admin client: topics, configs, groups, log directories and record deletion.

The public class is `barnabas.Admin`.
"""
