"""Mutating and validating admission: gates managed pods, checks what users wrote.

``__main__``       run the webhook, or print its webhook configurations
``config``         the webhook's configuration file: versioned YAML, every field checked on load
``errors``         the errors that the webhook itself raises
``metrics``        the webhook's metrics, added up when the registry is read
``process``        one webhook process, from configuration to the last drained request
``certificates/``  the webhook's certificate: made, renewed, published and served
``facts/``         what the webhook knows of its cluster
``http/``          the HTTP server: bodies, budgets, deadlines and callers
``registration/``  the webhook configurations that the API server is given
``review/``        from an admission review to its answer
"""
