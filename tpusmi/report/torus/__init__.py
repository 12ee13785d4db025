"""The torus of a slice: which chips are where, their figures, and the links between them."""
