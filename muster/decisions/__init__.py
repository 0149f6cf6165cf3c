"""One decision as a value: what it is made of, what came of it, and the same asked again.

The planner asks here, the dump records what was asked, `muster replay` asks again. Pure: a
question carries everything beside the snapshot that the answer depends on, time included.
"""
