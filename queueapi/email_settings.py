"""What is set about the mail server that alerts are sent through."""

from dataclasses import dataclass
from typing import Literal

from queuecore.config import setting


@dataclass(frozen=True, slots=True)
class EmailSettings:
    host: str = setting("", "The mail server that alerts are sent through. Empty: no e-mail is sent.")
    port: int = setting(587, "Its port.", minimum=1, maximum=65535)
    security: Literal["none", "starttls", "tls"] = setting(
        "starttls", "How the connection to it is protected: not at all, from its first words on, or from the start."
    )
    user: str = setting("", "Whom to sign in as there. Empty: nobody.")
    password: str = setting("", "The password for that.", secret=True)
    sender: str = setting("switchyard@localhost", "The address that e-mails come from.")
    # Far less than the lease of a delivery: whoever takes longer than that sends it twice.
    timeout_s: int = setting(10, "For how many seconds the server may be silent; at most 15.", minimum=1, maximum=15)
