"""One file per dialect: a wire object in, a gang out."""
