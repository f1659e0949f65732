"""What a crash may do to a message: how often it is handled.

at_most_once   The offset is committed before the handler runs, for up to 100 messages at a time. A crash loses those of
               them that are not yet handled; nothing is handled twice. For measurements and logs, where the next one
               comes soon.
at_least_once  The offset is committed when the handler has returned and what it sent is stored. A crash repeats what
               was not yet committed; nothing is lost. The handler must bear a repetition. The default.
exactly_once   What the handler sent through its context and the offset take effect in one transaction. A crash runs
               the handler again, but of its sends only those of one attempt ever exist for who reads committed
               messages. What it does elsewhere (a database, an e-mail) is still done at least once. Needs a provider
               with transactions.
"""

from enum import StrEnum

from queuecore.errors import ConfigurationError, NotSupported
from queuecore.providers.base import Capabilities


class Delivery(StrEnum):
    """How often a message is handled when something crashes.

    at_most_once   commit, then handle: a crash may lose messages, and repeats none
    at_least_once  handle, then commit: a crash may repeat messages, and loses none
    exactly_once   what the handler sends and the commit are one transaction: a crash does neither
    """

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"

    @classmethod
    def of(cls, name: "Delivery | str", capabilities: Capabilities) -> "Delivery":
        """The one of that name. ConfigurationError lists the names there are; NotSupported where a provider with
        these capabilities cannot do it."""
        try:
            delivery = cls(name)
        except ValueError:
            raise ConfigurationError(f"there is no delivery {name!r}; choose one of {', '.join(cls)}") from None
        if delivery is cls.EXACTLY_ONCE and not capabilities.transactions:
            raise NotSupported(
                "exactly_once needs transactions, which this provider does not have; use at_least_once with a handler "
                "that bears repetition, or another provider"
            )
        return delivery
