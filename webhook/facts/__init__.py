"""What the webhook knows of its cluster: profiles, policies, owners and the extender's answers."""
