"""How fast a decision is: `sidestep bench`. The machine's limits, rivals and peers, in one process."""
