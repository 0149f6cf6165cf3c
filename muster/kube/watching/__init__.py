"""List and watch: what changed, in order, without waiting for the reader."""
