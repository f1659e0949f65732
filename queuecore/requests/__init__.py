"""Request and response over queues: a call that waits, between services that only send messages.

Who asks has a `RequestTemplate`, who answers a `ResponseTemplate`; `RequestTopics` says where they meet.
"""

from queuecore.requests.counts import LAG_BOUNDS_MS, RequestCounts, ResponseCounts, lag_percentile
from queuecore.requests.future import ResponseFuture
from queuecore.requests.options import RequestOptions, ResponseOptions
from queuecore.requests.request import Reply, Request, RequestHandler
from queuecore.requests.responding import ResponseTemplate
from queuecore.requests.template import RequestTemplate
from queuecore.requests.topics import RequestTopics

__all__ = [
    "LAG_BOUNDS_MS",
    "Reply",
    "Request",
    "RequestCounts",
    "RequestHandler",
    "RequestOptions",
    "RequestTemplate",
    "RequestTopics",
    "ResponseCounts",
    "ResponseFuture",
    "ResponseOptions",
    "ResponseTemplate",
    "lag_percentile",
]
