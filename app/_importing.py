"""Imported before all else: Ctrl-C during the imports of `python -m app` ends it without a traceback.

`app.command_line.begin` has Python handle it again.
"""

import signal
import sys

if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # as Python looks for app
    signal.signal(signal.SIGINT, signal.SIG_DFL)
