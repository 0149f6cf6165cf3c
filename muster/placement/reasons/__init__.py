"""Why a gang waits, in words and numbers.

``waiting``       the reason in a fixed word, the numbers, and what would help
``obstacles``     the rule without which the gang would be placed
``perdomain``     what the gang would find in each domain
``missingnodes``  whether the present nodes could hold the gang at all
``errors``        an error of ours as one line
``explanation``   decisions as sentences, and as plain values for the read API
"""
