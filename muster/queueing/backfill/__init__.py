"""Who goes before a gang that waits for room, and when that gang starts.

The algorithm is EASY backfill (Lifka, JSSPP 1995, "The ANL/IBM SP scheduling system"): the first
gang that does not fit has a promise, the others go first where they cannot delay it.

``runtimes``      how long a gang runs at most: written on it, else learned, else unknown
``pastruns``      the last runs of each queue, which its object keeps
``expectedends``  when what runs now is expected to end
``promise``       a start and nodes, and which gangs may go before it
``promisetext``   the same in words
"""
