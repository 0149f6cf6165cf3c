"""The real control plane on loopback: built once, started for each test."""
