"""Message types that are known by description alone: no generated code is needed to read, write or compare them."""

from queuecore.messagetypes.compatibility import Incompatibility, find_incompatibilities
from queuecore.messagetypes.compiling import compile_sources
from queuecore.messagetypes.forms import MessageForm, load_form, message_names

__all__ = [
    "Incompatibility",
    "MessageForm",
    "compile_sources",
    "find_incompatibilities",
    "load_form",
    "message_names",
]
