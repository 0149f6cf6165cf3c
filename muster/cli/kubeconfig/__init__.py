"""The kubeconfig as kubectl reads it, for commands.

The programs read theirs in ``muster.kube.http.credentials``, by the `kubernetes` package. There are
two readers because neither can do the other's work:

- The package takes a second to import, at every command and every completion. It reads one file,
  not a list, and it names no file, context or field in what it says about a mistake.
- A program may run for months on one identity. The package runs a credential program again when
  that credential expires, and renews OIDC tokens by their refresh token; a command needs neither.

What both know: tokens, files of tokens that are read again, client certificates, credential
programs with ``provideClusterInfo``, ``tls-server-name``, ``proxy-url``, the pod's ServiceAccount.

``files``       which files, and how several are one
``context``     the context in use: server, namespace, user
``credential``  what the user shows: token, certificate
``execplugin``  a credential from a program (client.authentication.k8s.io)
"""
