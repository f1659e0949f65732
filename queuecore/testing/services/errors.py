"""What can go wrong with a service, told apart by what the caller can do about it.

QueueError
└── ServiceError
    ├── ServiceMissing   it cannot be had on this machine: install something, or skip
    └── ServiceFailed    it is here but did not start, died, or its directory is in use: look at its log
"""

from queuecore.errors import QueueError


class ServiceError(QueueError):
    """Any trouble with a service; the message names the cause and the remedy."""

    code = "service_error"


class ServiceMissing(ServiceError):
    """The service's programs are not on this machine and could not be fetched."""

    code = "service_missing"


class ServiceFailed(ServiceError):
    """The service's programs are here, but it does not run."""

    code = "service_failed"
