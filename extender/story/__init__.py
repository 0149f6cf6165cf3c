"""The story of a pod or a gang: what happened to it, and what caused what, from a bounded buffer.

``entries``  one thing that happened: an event, a look, a decision; its words are made when asked
``story``    the buffer, and which entry an event is the answer to
``chain``    the entries about a pod or a gang, with all that led to them and followed from them

The engine notes every event that changes the state. Entries are numbered; a cause is the number of
an entry, 0 for none. Pure: time comes in with the event (docs/story.md).
"""
