"""Which member gets which rank."""
