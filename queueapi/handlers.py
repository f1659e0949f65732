"""The handlers of this installation: those that ship, and those of the modules that the settings name.

Web and workers load the same, so that a queue is refused where nobody could consume it.
"""

import importlib
import logging
from typing import Final

from queueapi.config import config
from queuecore.consuming.handlers import find_handler
from queuecore.errors import QueueError

logger = logging.getLogger(__name__)

# By name, as nothing in the control plane depends on workers.
_SHIPPED: Final = ("workers.handlers", "workers.demo.handlers")

_problems: dict[str, str] = {}


def load_handlers() -> None:
    """Import the modules, which registers their handlers. Repeatable. One that fails is told of, and the rest loaded:
    its queues alone stand still."""
    for module in (*_SHIPPED, *config().handlers):
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            _problems[module] = f"{type(error).__name__}: {error}"
            logger.error("the handlers of %s cannot be loaded: %s", module, _problems[module], exc_info=error)
        else:
            _problems.pop(module, None)


def handler_timeout_ms(name: str) -> int | None:
    """How long one message may take, as the handler says itself; None where it says nothing, or nobody knows it."""
    try:
        return find_handler(name).timeout_ms
    except QueueError:
        return None


def handler_problems() -> dict[str, str]:
    """The modules that could not be loaded, with the reason."""
    return dict(_problems)
