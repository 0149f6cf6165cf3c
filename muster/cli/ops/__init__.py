"""What the operator's commands do, apart from their flags: loaded when one of them runs."""
