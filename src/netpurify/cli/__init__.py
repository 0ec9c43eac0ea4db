"""The command line: each command parses, calls one public function, shows the result and chooses the exit code.

Exit codes: 0 all well, 1 findings, or a repair that costs too much, 2 usage or bad input, 3 a fault of netpurify or of
its installation, 130 interrupted. Nothing here imports torch before a command has work for it.
"""

import logging
import signal
import sys
import threading
import warnings

INTERRUPTED = 130
BROKEN = 3


def main() -> None:
    """Run the command line and exit with a code that scripts can use."""
    try:
        # Here rather than above: an interrupt or a failure while modules load is answered like any other.
        from netpurify.cli import streams
        from netpurify.cli.app import run
        from netpurify.cli.screen import tell_warning

        streams.install()
        warnings.showwarning = tell_warning
        # Where nothing is writable, matplotlib tells at length how it manages; it does, and so do we.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except ImportError as problem:
        sys.stderr.write(f"netpurify: it is not installed whole ({str(problem)!a}); install it again\n")
        code = BROKEN
    if threading.current_thread() is threading.main_thread():
        # From here on the interpreter only cleans up, and Python would answer an interrupt with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
