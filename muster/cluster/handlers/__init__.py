"""One module per kind of event: what it changes in the model."""
