"""The device plugin: shows a node's devices to the kubelet and hands out the chosen ones."""
