"""`muster replay`: recorded decisions, asked again.

``replay``       its flags and exit codes
``replayviews``  a whole dump as text
``replaygang``   one gang as text, each time it was asked about
``replayjson``   the same as JSON
"""
