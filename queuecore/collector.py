"""How often Python looks for garbage."""

import gc
from typing import Final

# Young objects, then how many looks at these until one at the older, and at all.
_SELDOM: Final = (50_000, 20, 50)


def collect_seldom() -> None:
    """For a process that has many messages in its hands: Python's own thresholds are for small programs.

    Python looks through everything that is young whenever 700 objects more were made than freed. A process with some
    thousand messages under way has these objects all the time, so it looks again and again through what is in use and
    will be freed by itself: a third of its time, for nothing. What is there now is not looked at any more, so call it
    once, when all is imported; it holds for the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
