"""Commands that ask a running extender.

``client``       `muster status`, `gangs`, `explain`; how each of these commands asks
``story``        `muster story`: what happened to a pod or a gang
``whatif``       `muster whatif`, `muster defrag`
``connection``   flags of a connection: certificate or token
``views``        answers of status, gangs and explain as text; tables
``storyviews``   stories as text
``whatifviews``  answers of what-if and defrag as text
"""
