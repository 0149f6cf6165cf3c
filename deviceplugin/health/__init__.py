"""What readings and signals mean for a device: its state, alerts, what is told of them. Pure."""
