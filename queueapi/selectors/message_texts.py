"""A text in messages: looked for as it was published, and as people are shown it."""

import json
from collections.abc import Iterator

from queueapi.selectors.message_shapes import MessageShaper, PayloadForm
from queuecore.messages import Record
from queuecore.messagetypes import MessageForm
from queuecore.messagetypes.forms import MAX_DECODED_BYTES


class TextSearch:
    """Whether a message has a text in its key, its headers or its payload, in any case. `message_form` is what messages
    are, where anybody said so."""

    def __init__(self, text: str, message_form: MessageForm | None) -> None:
        self._text = text.casefold()
        self._shaper = MessageShaper(most_bytes=MAX_DECODED_BYTES, message_form=message_form)

    def finds(self, record: Record) -> bool:
        return any(self._text in told.casefold() for told in self._told(record))

    def _told(self, record: Record) -> Iterator[str]:
        # What is large or in no form that is known has texts in it all the same.
        yield record.data.decode(errors="replace")
        shown = self._shaper.show(0, record)
        yield shown.key or ""
        for header in shown.headers:
            yield header.name
            yield header.value
        if shown.form in (PayloadForm.PROTOBUF, PayloadForm.JSON):
            yield shown.payload if isinstance(shown.payload, str) else json.dumps(shown.payload, ensure_ascii=False)
