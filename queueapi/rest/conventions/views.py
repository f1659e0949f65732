"""The views that keep the conventions: inherit `Conventional` first."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.views import APIView

from queueapi.locking import row_locked
from queueapi.rest.conventions import etags
from queueapi.rest.conventions.dry_runs import check_dry_run
from queueapi.rest.conventions.idempotency import answer_once, has_left
from queueapi.rest.conventions.queries import check_body, check_query


class Conventional(APIView):
    """Unknown parameters are refused, single things have ETags, and writes heed `If-Match`, `Idempotency-Key` and
    `dry_run`. A method that writes says how it is planned: `rehearsed` or `plans_itself`. Query parameters that all
    paths of one thing have are the view's `path_parameters`."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        name = (request.method or "").lower()
        handler = getattr(self, name, None)
        if handler is not None and name != "options":
            check_query(self, request)
            # DRF looks it up when this is done.
            setattr(self, name, partial(self._answer, handler))

    def holding(self) -> AbstractContextManager[None]:
        """Nobody else changes the thing of this request meanwhile. By default its row is locked; a view whose actions
        lock something else, or something else first, locks that."""
        return row_locked(self._get_thing())

    def _answer(self, handler: Callable[..., Any], request: Request, *args: Any, **kwargs: Any) -> Any:
        if request.method in SAFE_METHODS:
            response = handler(request, *args, **kwargs)
            return etags.answer_conditionally(request, response) if etags.is_thing(response) else response
        answer = partial(self._change, handler, request, *args, **kwargs)
        if check_dry_run(request, handler):
            return answer()
        return answer_once(self, request, handler, answer)

    def _change(self, handler: Callable[..., Any], request: Request, *args: Any, **kwargs: Any) -> Any:
        check_body(self, request)
        if not etags.has_precondition(request):
            return self._tagged(handler(request, *args, **kwargs))
        if not getattr(self, "detail", False):
            etags.refuse_precondition(request)
            return self._tagged(handler(request, *args, **kwargs))
        # What leaves the database does not keep others waiting for it.
        with nullcontext() if has_left(handler) else self.holding():
            etags.check_precondition(request, etags.etag_of(self._representation()))
            return self._tagged(handler(request, *args, **kwargs))

    def _tagged(self, response: Any) -> Any:
        """With the thing's ETag, where that is what a change answers with."""
        if etags.is_thing(response) and type(response.data.serializer) is self._serializer_class():
            response[etags.ETAG] = etags.etag_of(response.data)
        return response

    def _get_thing(self) -> Any:
        with self._retrieving() as view:
            return view.get_object()

    def _representation(self) -> Any:
        """As GET answers with it."""
        with self._retrieving() as view:
            return view.get_serializer(view.get_object()).data

    def _serializer_class(self) -> Any:
        with self._retrieving() as view:
            return view.get_serializer_class() if hasattr(view, "get_serializer_class") else None

    @contextmanager
    def _retrieving(self) -> Iterator[Any]:
        """Views choose rows and shapes by what is done with them."""
        view: Any = self
        action, view.action = getattr(view, "action", None), "retrieve"
        try:
            yield view
        finally:
            view.action = action
