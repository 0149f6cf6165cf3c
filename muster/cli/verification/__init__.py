"""`muster verify`: each module checks one area of an installation and reports what to correct.

``run``           all checks in turn, independent of each other
``finding``       the result of a check: one line, and what to do about it
``foundconfig``   the scheduler configuration, searched in the cluster
``scheduler``     whether it calls Muster with correct settings
``webhooks``      whether the webhook configurations are there, and reach a webhook they trust
``registration``  wanted and stored webhook configurations
``callers``       who may call the extender, and whether kube-scheduler is among them
``webhookcallers``  whether the webhook reserves, for an API server that shows who it is
``installation``  where Muster is installed, and how its webhook is configured there
``installedconfig``  the configuration file of an installed program
``rights``        whether the ServiceAccounts have the rights of the shipped RBAC
``leader``        whether a replica leads
``servingcert``   whether the extender's certificate exists, is valid, and has its names
``x509files``     whether certificates are still valid
``shipped``       files of manifests/, in the source tree or installed
"""
