"""Logs, metrics and health checks, shared by the shells. The core never imports this.

``apicalls``     requests to the API server in metrics: how many, how they ended, how long they took
``clientcert``   names and validity of a client certificate that a TLS handshake has verified
``configfile``   the configuration file of a program: strict YAML, errors that name the remedy
``connections``  a connection that passes everything on to aiohttp's handler
``health``       health checks by name, as the control plane's own components serve them
``idleconnections``  closes connections that come to nothing
``imports``        imports without the cycle collector, where a program begins
``logs``         logs: the standard library's loggers, one JSON object per line on standard error
``memory``       Python's cycle collector and malloc's heap, tuned for a large model
``metrics``      what every shell's metrics share: the registry, buckets, and the event loop's lag
``pages``        the health page that every process serves
``printable``     text of others on a terminal: what it would obey is shown
``servingcert``  the serving certificate from files, read again when they change
"""
