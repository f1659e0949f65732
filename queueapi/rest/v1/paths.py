"""What a path may hold."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.views import APIView


class FoundByText(APIView):
    """For resources whose path holds any text. NUL is in no text of PostgreSQL's, which cannot even be asked."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if any("\0" in value for value in kwargs.values()):
            raise Http404
