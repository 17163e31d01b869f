"""Ends commands for certain: Python handles signals between its own instructions, and native code may never return.

Inside `ends_at_once` the handlers are machine code, which the kernel runs in the middle of anything, such as a loop
that Numba compiled and that holds the interpreter. They pass each signal on to Python. When Python does not end the
process within `GRACE` seconds, or when one more signal comes, the process exits. Files stay whole, because each is
written beside its place and then moved into it.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

GRACE = 1
"""The seconds in which Python may end the process by itself."""


class _State(ctypes.Structure):
    """What the handlers read and write."""

    _fields_ = (
        ("patience", ctypes.c_int),  # the number of signals that Python may still handle in its own time
        ("ending", ctypes.c_int),  # the signal that ends the process; 0 if none
    )


_state = _State()
_LONGEST = 64
_last_words = ctypes.create_string_buffer(_LONGEST)
_guarded: list[frozenset[int]] = []
"""The signals of each active block, the innermost last."""


@contextmanager
def ends_at_once(
    numbers: Collection[int] = (signal.SIGINT,), patience: int = 0, last_words: bytes = b"interrupted\n"
) -> Iterator[None]:
    """Inside the block, one signal more than `patience` ends the process, whatever it is doing.

    The first that is too many leaves Python `GRACE` seconds, the next leaves it none, except for SIGHUP, which closing
    a terminal may cause several times. A block replaces the one around it. Signals that are ignored stay ignored. In a
    thread, where Python handles no signals, nothing changes.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _state.patience, _last_words.value
    _state.patience, _last_words.value = patience, last_words[: _LONGEST - 1]
    _guarded.append(frozenset(number for number in numbers if callable(signal.getsignal(number))))
    _guard(_guarded[-1])
    try:
        yield
    finally:
        leave_to_python(*_guarded.pop())
        _state.patience, _last_words.value = before
        if _guarded:
            _guard(_guarded[-1])
        else:  # Python is about to end the process
            wait_for_python()


def is_command() -> bool:
    """Whether this runs inside `ends_at_once`, that is, in a command and not in a user's program."""
    return bool(_guarded)


def wait_for_python() -> None:
    """Cancel the end of the process, if a signal has begun it: Python runs, and handles the signal."""
    if _state.ending:
        signal.alarm(0)
        leave_to_python(signal.SIGALRM)
        _state.ending = 0


def leave_to_python(*numbers: int) -> None:
    """Leave these signals to Python's handlers."""
    for number in numbers:
        handler = signal.getsignal(number)
        if handler is not None:  # None: a handler that was not installed by Python
            signal.signal(number, handler)


def _guard(numbers: Collection[int]) -> None:
    for number in numbers:
        set_handler, heard = _native()
        set_handler(number, heard)
        signal.siginterrupt(number, True)  # Python checks for signals when a system call is interrupted


@lru_cache(maxsize=1)
def _native() -> tuple[Any, int]:
    """The C library's `signal`, and the address of the handler."""
    import llvmlite.binding as llvm  # imported late: it takes 30 ms

    set_handler = ctypes.CDLL(None).signal
    set_handler.argtypes, set_handler.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    python = set_handler(signal.SIGALRM, None)  # Python has one handler for all signals
    signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
    llvm.add_symbol(_PYTHON, python)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    compiled = llvm.create_mcjit_compiler(llvm.parse_assembly(_handlers()), machine)
    compiled.finalize_object()
    _alive.append(compiled)
    return set_handler, compiled.get_function_address("opsmith_heard")


_PYTHON = "opsmith_python"
_alive: list[Any] = []


def _handlers() -> str:
    """The handlers as LLVM's code.

    def finish(number):                   def heard(number):
        write(2, last_words)                  if ending and number != SIGHUP: finish(number)
        _exit(128 + ending)                   python(number)
                                              if patience: patience -= 1; return
                                              ending = number
                                              signal(SIGALRM, finish); alarm(GRACE)
    """
    from llvmlite import ir

    module, number, size, nothing = ir.Module(), ir.IntType(32), ir.IntType(64), ir.VoidType()
    handler = ir.FunctionType(nothing, [number])

    def function(name: str, result: Any, *takes: Any) -> Any:
        return ir.Function(module, ir.FunctionType(result, takes), name)

    def variable(name: str) -> Any:
        place = ctypes.addressof(_state) + getattr(_State, name).offset
        return ir.Constant(size, place).inttoptr(number.as_pointer())

    finish = ir.Function(module, handler, "opsmith_finish")
    builder = ir.IRBuilder(finish.append_basic_block())
    words = ir.Constant(size, ctypes.addressof(_last_words))
    length = builder.call(function("strlen", size, size), [words])
    builder.call(function("write", size, number, size, size), [number(2), words, length])
    status = builder.add(builder.load(variable("ending")), number(128))
    builder.call(function("_exit", nothing, number), [status])
    builder.ret_void()

    heard = ir.Function(module, handler, "opsmith_heard")
    builder = ir.IRBuilder(heard.append_basic_block())
    ending = builder.icmp_signed("!=", builder.load(variable("ending")), number(0))
    again = builder.icmp_signed("!=", heard.args[0], number(int(signal.SIGHUP)))
    with builder.if_then(builder.and_(ending, again)):
        builder.call(finish, heard.args)
    builder.call(function(_PYTHON, nothing, number), heard.args)
    left = builder.load(variable("patience"))
    with builder.if_else(builder.icmp_signed(">", left, number(0))) as (patient, impatient):
        with patient:
            builder.store(builder.sub(left, number(1)), variable("patience"))
        with impatient:
            builder.store(heard.args[0], variable("ending"))
            set_handler = function("signal", size, number, handler.as_pointer())
            builder.call(set_handler, [number(int(signal.SIGALRM)), finish])  # Python 3.10 writes an enum by name
            builder.call(function("alarm", number, number), [number(GRACE)])
    builder.ret_void()
    return str(module)
