"""`muster verify`: each module checks one area of an installation and says what to mend.

``run``           all checks in turn, each on its own
``finding``       what a check says: one line, and what to do about it
``foundconfig``   the scheduler configuration, looked for in the cluster
``scheduler``     whether it calls Muster, and in a way that works
``webhooks``      whether the webhook configurations are there, and reach a webhook they trust
``registration``  these as they should be, and as they are stored
``callers``       who may call the extender, and whether kube-scheduler is among them
``rights``        whether the ServiceAccounts may do what the shipped RBAC says
``leader``        whether a replica leads
``servingcert``   whether the extender's certificate is there, valid, and for its names
``x509files``     whether certificates are still good
``shipped``       files of manifests/, in the source tree or installed
"""
