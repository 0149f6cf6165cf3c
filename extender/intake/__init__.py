"""From watched objects to events of the cluster model."""
