"""Looking inside: Programs at every stage, the memory that they need, and pictures of them."""
