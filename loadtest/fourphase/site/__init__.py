"""The cluster under load: its programs, what watches them, and turns beside a bare scheduler."""
