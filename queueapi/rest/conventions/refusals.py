"""What the conventions refuse."""

from rest_framework import status
from rest_framework.exceptions import APIException


class PreconditionFailed(APIException):
    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "precondition_failed"


class RateLimited(APIException):
    """`wait` is for how many seconds."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "rate_limited"

    def __init__(self, limit: int, wait: int) -> None:
        self.wait = wait
        super().__init__(f"{limit} requests in a minute are the most; try again in {wait} s, and send fewer")


class KeyReused(APIException):
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "idempotency_key_reused"


class KeyInUse(APIException):
    """`wait` is for how many seconds at most."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "idempotency_key_in_use"

    def __init__(self, wait: int) -> None:
        self.wait = wait
        super().__init__("a request with this Idempotency-Key is still being carried out; send it again later")


class AnswerNotKept(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_code = "answer_not_kept"
    default_detail = (
        "the request with this Idempotency-Key was carried out, and its answer was too large or too secret to be kept; "
        "look at what it changed instead"
    )
