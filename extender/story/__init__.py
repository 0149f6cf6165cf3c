"""The story of a pod or a gang: what happened to it and why, from a bounded buffer.

``entries``  one thing that happened: an event, a look, a decision; its text is made when it is read
``story``    the buffer, and the entry that caused each event
``chain``    the entries about a pod or a gang, with their causes and what followed from them

The engine notes every event that changes the state. Entries are numbered. A cause is the number of
an entry, 0 for none. Pure: the time is an argument (docs/story.md).
"""
