"""How fast a decision is: `make bench`. The machine's limits, rivals and peers, in one process."""
