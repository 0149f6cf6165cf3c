"""The one replica that plans and writes."""
