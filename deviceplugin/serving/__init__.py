"""What the kubelet sees of a resource: sockets, registration, gRPC. Knows nothing of GPUs."""
