"""The HTTP server: bodies, budgets, deadlines and callers.

``bodies``           bodies of requests, read within limits of size, time and memory
``bodybudget``       how much of reviews that are still being sent may lie in memory at once
``callers``          who may ask for reviews
``deadline``         how long the API server waits for an answer: ``?timeout=`` of the request
``server``           the HTTP side: reviews in, reviews out, health and metrics
"""
