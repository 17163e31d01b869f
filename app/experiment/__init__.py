"""A run of train.py: what is trained on what, who watches it, and what it keeps and says when it ends."""
