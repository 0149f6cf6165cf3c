"""From wire objects to values and events of the cluster model."""
