"""Research built with the library: the reproduction of the paper, the studies and the optimality results."""
