"""Research built with the library: the reproduction of the paper and the studies."""
