"""The library that Muster's programs share. Nothing in it starts a process by itself."""
