"""What admission adds to a pod so that it fits its cluster: pure, from pod and facts to patch."""
