"""Which running pods would have to move so that a waiting gang fits: a proposal, never an act."""
