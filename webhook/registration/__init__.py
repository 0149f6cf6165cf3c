"""The webhook configurations that the API server is given.

``configurations``   the Mutating- and the ValidatingWebhookConfiguration
``creation``         makes the webhook configurations where this process may (the demo, tests)
``matchconditions``  ``matchConditions``: CEL that the API server evaluates itself
"""
