"""HTTP to the API server: connections, credentials, retries and the leader's fence.

``transport``    one pool of connections, errors by class, retries where they are safe
``exchange``     HTTP/1.1 over connections that stay open: releases and lists
``longbody``     the body of a long answer, read to where it is to stand
``closedbody``   an answer that ends with its connection
``sockets``      sockets for a leader's writes: nothing leaves late
``fence``        stops a process from writing when its time as leader is over
``auth``         who we are to the API server, renewed as it ages
``credentials``  where credentials come from: kubeconfig, the pod's files, or given once
``serverclock``  what time the API server has
``calllabels``   what a request is called in metrics
"""
