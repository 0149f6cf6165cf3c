"""Fabric and cluster profiles as data: read, checked and merged."""
