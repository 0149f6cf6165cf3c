"""Small random topologies, an exact oracle for them, and the rules of other schedulers.

``bench``   plans on random topologies beside the optimum and other rules
``cases``   random clusters with one gang each: trees of any shape, loaded, up to 64 hosts
``oracle``  the exact answer, from a solver that knows nothing of Muster: OR-tools CP-SAT
``rules``   how others order domains and nodes, re-stated from the descriptions of their rules
``score``   cases put to the planner, and its plans counted as the oracle counts
"""
