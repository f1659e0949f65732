"""What channels of each kind are configured with. Some of it is secret, and shown to nobody again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from queueapi.alerting.email import send_email
from queueapi.alerting.messages import Message, slack_body, webhook_body
from queueapi.alerting.posting import post
from queueapi.choices import ChannelKind
from queueapi.config import config
from queueapi.errors import InvalidInput
from queueapi.outgoing.connection import Target
from queueapi.outgoing.signing import read_secret
from queueapi.outgoing.urls import header_problems, target_of, url_problems
from queuecore.consuming.handler_options import (
    ADDRESS_OPTION,
    SECRET_OPTION,
    hide_secrets,
    keep_secrets,
    read_options,
)
from queuecore.errors import ConfigurationError

MOST_RECIPIENTS: Final = 50
MAX_TIMEOUT_MS: Final = 30_000


class Channel(Protocol):
    def send(self, message: Message) -> None:
        """ChannelFailed where it may help to try again, ChannelRefused where it does not."""


@dataclass(frozen=True, slots=True)
class EmailOptions:
    """`recipients` are the addresses that one e-mail goes to."""

    recipients: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.recipients) <= MOST_RECIPIENTS:
            raise ConfigurationError(f"recipients: {len(self.recipients)} were given; give 1 to {MOST_RECIPIENTS}")
        for recipient in self.recipients:
            try:
                validate_email(recipient)
            except ValidationError:
                raise ConfigurationError(f"recipients: {recipient[:100]!r} is no e-mail address; mend it") from None

    def send(self, message: Message) -> None:
        send_email(message, self.recipients)


@dataclass(frozen=True, slots=True)
class SlackOptions:
    """An incoming webhook of Slack, or of whatever takes the same: Mattermost, Rocket.Chat, Discord with `/slack`.

    url            http:// or https://; only its host is shown again
    timeout_ms     for one request, from looking its host up to the end of its answer
    allow_private  whether addresses may be reached that are not on the open network; only where the installation allows
                   it too
    """

    url: str = field(metadata=ADDRESS_OPTION, repr=False)
    timeout_ms: int = 10_000
    allow_private: bool = False

    def __post_init__(self) -> None:
        _check_reachable(self.url, self.timeout_ms, allow_private=self.allow_private)

    @property
    def target(self) -> Target:
        return _target(self.url, self.timeout_ms, allow_private=self.allow_private)

    def send(self, message: Message) -> None:
        post(self.target, message, slack_body(message), timeout_s=self.timeout_ms / 1000)


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """As `SlackOptions`, with a body of JSON that programs read.

    headers  more headers, such as Authorization; never shown again
    secret   signs each request: `whsec_` and base64, or any text of 16 bytes or more; never shown again
    """

    url: str = field(metadata=ADDRESS_OPTION, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, metadata=SECRET_OPTION, repr=False)
    secret: str = field(default="", metadata=SECRET_OPTION, repr=False)
    timeout_ms: int = 10_000
    allow_private: bool = False

    def __post_init__(self) -> None:
        _check_reachable(self.url, self.timeout_ms, allow_private=self.allow_private)
        if problems := header_problems(self.headers):
            raise ConfigurationError("; ".join(problems))
        if self.secret:
            read_secret(self.secret)

    @property
    def target(self) -> Target:
        return _target(self.url, self.timeout_ms, allow_private=self.allow_private)

    def send(self, message: Message) -> None:
        key = read_secret(self.secret) if self.secret else None
        timeout_s = self.timeout_ms / 1000
        post(self.target, message, webhook_body(message), timeout_s=timeout_s, headers=self.headers, key=key)


_KINDS: Final[Mapping[ChannelKind, type[EmailOptions] | type[SlackOptions] | type[WebhookOptions]]] = {
    ChannelKind.EMAIL: EmailOptions,
    ChannelKind.SLACK: SlackOptions,
    ChannelKind.WEBHOOK: WebhookOptions,
}


def open_channel(kind: str, options: Mapping[str, object]) -> Channel:
    """ConfigurationError where it cannot be used as it is: settings may have changed since it was entered."""
    return read_options(_KINDS[ChannelKind(kind)], options)


def shown_options(kind: str, options: Mapping[str, object]) -> dict[str, object]:
    """As people may see them."""
    return hide_secrets(_KINDS[ChannelKind(kind)], options)


def entered_options(kind: str, entered: Mapping[str, object], before: Mapping[str, object]) -> dict[str, object]:
    """What somebody entered, with secrets that came back hidden as they were. InvalidInput says what to enter."""
    try:
        options = keep_secrets(_KINDS[ChannelKind(kind)], entered, before)
        open_channel(kind, options)
    except ConfigurationError as error:
        raise InvalidInput(f"options: {error.message}", fields={"options": [error.message]}) from error
    return options


def _check_reachable(url: str, timeout_ms: int, *, allow_private: bool) -> None:
    problems = url_problems(url, allow_private)
    if allow_private and not config().webhook_allow_private:
        problems.append(
            "allow_private is true, which this installation allows nobody; leave it out, or have whoever runs it set "
            "SWITCHYARD_WEBHOOK_ALLOW_PRIVATE"
        )
    if not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
        problems.append(f"timeout_ms is {timeout_ms}; use 1 to {MAX_TIMEOUT_MS}")
    if problems:
        raise ConfigurationError("; ".join(problems))


def _target(url: str, timeout_ms: int, *, allow_private: bool) -> Target:
    return target_of(url, allow_private=allow_private, connect_timeout_s=timeout_ms / 1000)
