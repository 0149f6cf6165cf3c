"""One decision as a value: what was asked, the answer, and the same asked again.

The planner decides here, the dump records what was asked, ``muster replay`` asks it again. Pure: a
question (``muster.placement.question``) carries everything beside the snapshot that the answer
depends on, time included.

``answer``        what the planner asks about a gang, and the kinds of answers
``assign``        from a plan to the assignments that are held: names, devices, ranks
``history``       the last decisions with the snapshots that they were made on
``record``        an answer as JSON lines, equal byte for byte when the answers are
``recording``     the file with states, questions and answers
``replay``        a recording read, and its questions asked again
``suppositions``  the cluster or the gang as it might be, and the answer then
``recordtext``    an answer in sentences
"""
