"""How much work a call is, where time would tell something else each time."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python run in the call, and none of what the interpreter's collector calls meanwhile."""
    lines = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before, was_collecting = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
        if was_collecting:
            gc.enable()
    return lines
