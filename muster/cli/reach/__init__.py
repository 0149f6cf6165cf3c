"""The ways from a user's machine to the extender that leads (docs/adr/0053).

``way``           which way is taken, and its flags
``direct``        --extender URL
``serviceproxy``  the API server's proxy to the Service, with nothing but a kubeconfig
``portforward``   a port of the leader's pod, for whoever may not use the proxy
``tunnel``        bytes to a pod over a WebSocket
``exchange``      one request and its answer
``identity``      what a kubeconfig's user shows the extender
``refusals``      answers and failures in words: what was tried, where, what to do
``patience``      a line on a terminal while something takes long
"""
