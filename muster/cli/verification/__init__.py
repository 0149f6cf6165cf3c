"""`muster verify`: each module checks one area of an installation and says what to mend."""
