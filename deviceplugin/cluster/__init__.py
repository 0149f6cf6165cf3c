"""What the device plugin reads from the API server and writes to its Node."""
