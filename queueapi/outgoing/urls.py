"""Addresses and headers that somebody entered: whether a request could be sent there, and so."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from queueapi.outgoing.addresses import is_name, is_open, literal_address
from queueapi.outgoing.connection import HTTP_PORT, HTTPS_PORT, Target

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_OURS: Final = re.compile(
    r"host|connection|content-length|content-type|transfer-encoding|te|trailer|upgrade|expect|user-agent|"
    r"(webhook|switchyard|proxy)-.*",
    re.IGNORECASE,
)


def target_of(url: str, *, allow_private: bool, connect_timeout_s: float) -> Target:
    """Of an address that has no `url_problems`."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    port = parts.port or (HTTPS_PORT if tls else HTTP_PORT)
    return Target(parts.hostname or "", port, path, tls, allow_private, connect_timeout_s)


def is_header_value(text: str) -> bool:
    return _HEADER_VALUE.fullmatch(text) is not None


def url_problems(url: str, allow_private: bool) -> list[str]:
    """What is wrong with the address, without repeating it: it may hold a secret."""
    if not _PRINTABLE.fullmatch(url):
        return ["the url is empty or has spaces or other characters that must be written as %XX; write them so"]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return [f"the url cannot be read: {error}; use one such as https://example.org/hook"]
    if parts.scheme not in ("http", "https") or not host:
        return ["the url must begin with http:// or https:// and a host"]
    if parts.username is not None or parts.password is not None or parts.fragment:
        return ["the url has a user, a password or a fragment (#…); give credentials in 'headers' instead"]
    if not is_name(host):
        return ["the url's host is no name that could be looked up: a part of it is empty or too long; mend it"]
    if (address := literal_address(host)) and not allow_private and not is_open(address):
        return [f"{address} is not on the open network; use another host, or allow it with 'allow_private'"]
    return []


def header_problems(headers: Mapping[str, str]) -> list[str]:
    """What is wrong with headers that somebody wants to be sent besides ours."""
    problems = [f"the header {name!r} is set by Switchyard; leave it out" for name in headers if _OURS.fullmatch(name)]
    return problems + [
        f"the header {name!r} cannot be sent; use ASCII letters, digits and '-' in its name, one line of ASCII as value"
        for name, value in headers.items()
        if not _HEADER_NAME.fullmatch(name) or not is_header_value(value)
    ]
