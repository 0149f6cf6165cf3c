"""The extender's configuration file as typed settings."""
