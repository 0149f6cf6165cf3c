"""Pure: in which order waiting gangs are planned."""
