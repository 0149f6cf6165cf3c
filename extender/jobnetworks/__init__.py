"""Networks of jobs: which VNI a gang gets, and what is written for it."""
