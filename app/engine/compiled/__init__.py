"""The compiled engine: passes optimise a Program, which is lowered to typed loops and compiled to native code."""
