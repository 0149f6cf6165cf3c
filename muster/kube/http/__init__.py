"""HTTP to the API server: connections, credentials, retries and the leader's fence."""
