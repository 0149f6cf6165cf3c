"""Commands that need the load test's package: demo, loadtest, assets."""
