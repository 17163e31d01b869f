"""The compiled engine: passes optimise a Program, which is lowered to typed loops and compiled to native code."""

from app.engine.compiled.numba_alone import import_numba

import_numba()
