"""Is this process able to serve?"""

from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, JsonResponse


def health(_: HttpRequest) -> JsonResponse:
    """200 when the database answers, else 503 with the reason."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "reason": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})
