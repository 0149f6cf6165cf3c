"""Published traces and fleets, read or made from published figures."""
