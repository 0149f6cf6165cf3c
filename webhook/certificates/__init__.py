"""The webhook's certificate: made, renewed, published and served."""
