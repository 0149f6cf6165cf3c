"""The command line: `muster …`. A module here is a command; larger commands have a package.

``main``           the parser of all commands
``completion``     kubectl's completion of what is typed
``ask/``           status, gangs, explain, story, whatif, defrag: a running extender answers
``reach/``         the ways to that extender, with a kubeconfig or a URL
``kubeconfig/``    the kubeconfig as kubectl reads it
``inject/``        inject, policies: injection without a cluster
``replay/``        recorded decisions, asked again
``config/``        Muster's configuration from what others have
``networks/``      the networks of jobs
``verify``         whether Muster is installed correctly
``verification/``  the checks of `muster verify`, one area each
``ungate``         takes Muster's gate off pods by hand
``withdraw``       the steps before Muster is uninstalled
``certificates``   certificates for extender and kube-scheduler
``probe``          requests a page with a certificate or a token
``shells``         extender, webhook, device-plugin, vni-agent: start that program
``sourcetree``     demo, loadtest, bench, assets: only in a source tree
``ops/``           the work of the operator's commands, without their flags
``cluster``        flags of commands that talk to the API server
``output``         one JSON object, or a table for people; exit codes
"""
