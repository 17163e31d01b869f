"""What Paddle 1 does otherwise than Paddle 2."""
