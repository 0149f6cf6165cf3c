"""The kube-scheduler extender: HTTP wire, handlers and the planner loop."""
