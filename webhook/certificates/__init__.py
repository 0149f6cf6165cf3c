"""The webhook's certificate: made, renewed, published and served.

``authority``           a certificate authority of one's own, and the serving certificates it signs
``clusterapi``          the few calls that the webhook itself makes to the API server
``keeper``              keeps the certificates right: store, publish, sign, swap
``publisher``           keeps ``caBundle`` right in the webhook configurations
``rotation``            when an authority is replaced, so that at no moment a client trusts none
``servingcertificate``  from configuration to served certificates: the three sources, one interface
``stores``              where the authority is kept, so that replicas and restarts share it
``tls``                 a TLS context with a certificate that can be changed while it is used
"""
