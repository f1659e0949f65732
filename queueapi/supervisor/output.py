"""Children's output and our own words, one line at a time, each with the name of who said it."""

import os
import sys
import threading
from typing import IO

_WIDTH = 8
_COLOURS = (36, 32, 33, 35, 34, 96)
_lock = threading.Lock()


class Output:
    """Lines of one speaker. Safe from any thread."""

    def __init__(self, name: str, colour: int | None = None) -> None:
        prefix = f"{name:<{_WIDTH}} | "
        painted = sys.stdout.isatty() and colour is not None
        self._prefix = f"\033[{_COLOURS[(colour or 0) % len(_COLOURS)]}m{prefix}\033[0m" if painted else prefix

    def say(self, line: str) -> None:
        """What cannot be written is lost: the processes matter more than what is said about them."""
        with _lock:
            try:
                sys.stdout.write(f"{self._prefix}{line}\n")
                sys.stdout.flush()
            except BrokenPipeError:
                _stop_talking()
            except OSError:
                return

    def follow(self, pipe: IO[str]) -> threading.Thread:
        """Say each line of the pipe until it ends, on a thread of its own."""
        thread = threading.Thread(target=self._copy, args=(pipe,), daemon=True)
        thread.start()
        return thread

    def _copy(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                self.say(line.rstrip("\n"))


def _stop_talking() -> None:
    """Nobody listens any more; without this, Python would try once more at exit, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
