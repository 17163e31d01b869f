"""The compiled engine: a Program is optimised by passes, written as typed loops, and compiled to native code."""
