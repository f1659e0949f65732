from queuecore.errors import GivenUp, QueueError


class ChannelFailed(QueueError):
    """The message could not be delivered now."""

    code = "channel_failed"
    retryable = True


class ChannelRefused(GivenUp):
    """The message will not be taken, however often it is sent."""

    code = "channel_refused"
