"""Mutating and validating admission: gates managed pods, checks what users wrote."""
