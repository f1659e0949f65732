"""How often garbage is looked for is a process's own matter: asked in one of its own."""

import subprocess
import sys

_LOOK = """
import gc
from queuecore import collect_seldom
before = gc.get_threshold()
collect_seldom()
class Ring: pass
ring = Ring(); ring.own = ring
del ring
print(gc.get_threshold()[0] > 10 * before[0], gc.isenabled(), gc.get_freeze_count() > 0, gc.collect() > 0)
"""


def test_garbage_is_looked_for_seldom_and_still_found() -> None:
    told = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"] * 4
