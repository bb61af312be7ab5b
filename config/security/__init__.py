"""Configuration of security: secret values, JAAS entries, config providers, the properties of one listener, checks."""
