"""The differences of Paddle 1 from Paddle 2."""
