"""What pods ask of devices, and what nodes offer, by resource name."""
