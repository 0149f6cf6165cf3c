"""Why a gang waits, in words and numbers."""
