"""The topology page: the chips of a slice at their places in its torus, and their links."""
