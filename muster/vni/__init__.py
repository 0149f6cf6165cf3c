"""Networks of jobs: which number is whose, and which address. Pure, as the core is."""
