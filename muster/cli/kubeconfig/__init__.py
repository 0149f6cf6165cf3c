"""The kubeconfig as kubectl reads it, without the `kubernetes` package, which takes a second.

``files``       which files, and how several are one
``context``     the context in use: server, namespace, user
``credential``  what the user shows: token, certificate
``execplugin``  a credential from a program (client.authentication.k8s.io)
"""
