"""What a node has and what happens to it, as plain values. Pure: no I/O, no clock, no gRPC."""
