"""What must hold, checked without the code that is checked."""
