"""Networks of jobs: numbers and addresses. Pure.

``pools``      which VNIs may be used, and which pools exclude each other
``book``       which gang has which VNI; each line is an object in the API server
``addresses``  addresses of a job's pods in their network
"""
