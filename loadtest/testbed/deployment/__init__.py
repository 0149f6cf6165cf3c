"""Muster, its replicas and kwok, started beside a control plane."""
