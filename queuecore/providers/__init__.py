"""Where messages live. Every provider keeps the contract in `base`."""
