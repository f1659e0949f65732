"""What is set about the REST interface: how much one may ask of it."""

from dataclasses import dataclass

from queuecore.config import setting


@dataclass(frozen=True, slots=True)
class RestSettings:
    max_body_bytes: int = setting(
        2 * 1024 * 1024,
        "The largest body that a request may have: one message of the largest size as base64, and room for the rest.",
        minimum=1024,
    )
    max_json_depth: int = setting(64, "How deep the JSON of a request may be nested.", minimum=8, maximum=500)
    requests_per_minute: int = setting(
        6000, "Requests that one user or token may send in a minute, to each web server process.", minimum=1
    )
    anonymous_requests_per_minute: int = setting(
        300, "Requests without a name that one address may send in a minute, to each web server process.", minimum=1
    )
    idempotency_hours: int = setting(
        24,
        "For how many hours a request sent again with its `Idempotency-Key` gets the same answer.",
        minimum=1,
    )
