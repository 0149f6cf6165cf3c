"""Warnings and refusals for a pod's author, one file per check: each from a subject to findings.

``arguments``       arguments that will not do what they look like
``deprecated``      words that programs of today do not know any more, or will not for long
``devices``         settings that work against the device plugin or against memory registration
``fabric``          loud instead of silent: what is said about a gang without its fabric
``fabricproblems``  what stands between a pod and its fabric
``finding``         a finding of a check: a warning for the author, or a refusal
``problem``         what is wrong with a request, in the words that a person needs to put it right
``sharedmemory``    many accelerators with little shared memory: data loaders die of SIGBUS
``silenttcp``       variables of the user's own that take a pod off its fabric
"""
