"""Alerts as e-mail, through the server that the settings name."""

import smtplib
from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMessage

from queueapi.alerting.errors import ChannelFailed
from queueapi.alerting.messages import Message, plain_text, subject_line


def send_email(message: Message, recipients: Sequence[str]) -> None:
    """ChannelFailed: mail servers that refuse today may be mended tomorrow."""
    if not settings.EMAIL_HOST:
        raise ChannelFailed("no mail server is set; have whoever runs this installation set SWITCHYARD_EMAIL_HOST")
    mail = EmailMessage(subject_line(message), plain_text(message), to=list(recipients))
    # The same each time it is sent: who gets it twice can tell.
    mail.extra_headers["Message-ID"] = f"<{message.id.hex}@switchyard>"
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
        raise ChannelFailed(f"the mail server {where} did not take it: {type(error).__name__}: {error}") from error
