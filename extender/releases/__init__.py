"""What is written to pods after a plan: release, repair, rollback and eviction."""
