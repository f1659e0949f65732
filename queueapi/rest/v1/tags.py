"""What the operations are grouped by in the documentation: the first part of their paths."""

from collections.abc import Mapping
from typing import Final

_WHAT_IT_IS: Final[Mapping[str, str]] = {
    "alert-channels": "Who is told of alerts: e-mail, Slack, webhooks",
    "alert-rules": "When alerts fire, of what, and who is told",
    "alerts": "What is not as it should be; acknowledged, silenced",
    "audit": "Who changed what, when, from where; as a list, CSV or lines of JSON",
    "configuration": "All that administrators configure, as one document; exported and imported",
    "dead-letter-groups": "Dead letters that failed alike; one decision for all of them",
    "dead-letters": "Messages that no handler could process; looked at, edited, replayed, discarded",
    "groups": "Consumer groups and their offsets; reset with a plan first",
    "health": "Whether all parts are at work",
    "isolation-requests": "Tenants ask for queues of their own, administrators decide",
    "lag": "How far consumers are behind, by partition and by queue",
    "me": "Who is asking, and their password",
    "message-types": "What topics carry, as protobuf describes it",
    "operations": "What takes longer than a request: how far it is; paused, resumed, cancelled",
    "partitions": "Who consumes what; which partition a message would go to",
    "pending-requests": "Services' requests that wait for an answer",
    "pipeline": "How fresh the computed figures are",
    "queues": "Queues and their life; their messages, published, looked at and followed",
    "rebalances": "How partitions were handed over; trigger one, or ask what it would do",
    "replays": "Dead letters on their way back to their queues",
    "routing": "Which partitions belong to whom, in the version in force",
    "schema": "This description, as OpenAPI",
    "services": "Processes that consume and answer",
    "silences": "Alerts of which nobody is told for a while",
    "tenant-profiles": "What tenants may have: quotas, limits of their own queues",
    "tenants": "Whose messages these are; their quotas and state",
    "tokens": "What automation signs in with, and what for",
    "topics": "What the provider holds",
    "usage": "What tenants published and consumed",
    "users": "People and their roles",
    "version": "Which release this is",
}
TAGS: Final = [{"name": name, "description": told} for name, told in _WHAT_IT_IS.items()]
