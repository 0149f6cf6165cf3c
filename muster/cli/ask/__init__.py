"""Commands that ask a running extender.

``client``       `muster status`, `gangs`, `explain`; the flags of all of these commands
``story``        `muster story`: what happened to a pod or a gang
``whatif``       `muster whatif`, `muster defrag`
``drain``        `muster drain`
``queues``       `muster queues`, `muster queue`
``connection``   flags of a connection to a URL: certificate or token
``subjects``     pod/NAME, gang/NAME and so on
``outputs``      -o json, yaml, wide, name
``watch``        --watch: what has changed
``views``        answers of status, gangs and explain as text; tables
``queueviews``   queues as text
``drainviews``   nodes that gangs leave as text
``storyviews``   stories as text
``whatifviews``  answers of what-if and defrag as text
"""
