"""The compiled engine: a Program is optimised by the passes, written out as Python source, and compiled by Numba."""
