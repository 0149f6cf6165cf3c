"""The command line: `muster …`. A module here is a command; rooms hold commands with more to them.

``main``           the parser of all commands
``ask/``           status, gangs, explain, story, whatif, defrag: a running extender answers
``inject/``        inject, policies: injection without a cluster
``replay/``        recorded decisions, asked again
``networks/``      the networks of jobs
``verify``         is Muster installed so that it works
``verification/``  the checks of `muster verify`, one area each
``ungate``         takes Muster's gate off pods by hand
``certificates``   what extender and kube-scheduler show each other
``probe``          asks a page with a certificate or a token
``shells``         extender, webhook, device-plugin, vni-agent: become that program
``sourcetree``     demo, loadtest, bench, assets: only where the source tree is
``ops/``           what the operator's commands do, apart from their flags
``cluster``        flags of commands that talk to the API server
``output``         one JSON object, or a table for people
"""
