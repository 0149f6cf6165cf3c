"""Who may call: certificates, tokens and the answers of the API server about them."""
