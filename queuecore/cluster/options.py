"""How a cluster behaves. The same for all of its instances."""

from dataclasses import dataclass

from queuecore.cluster.assignment import Assignor
from queuecore.errors import ConfigurationError
from queuecore.hashing import DEFAULT_HASH


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """
    lease_s              an instance that is silent for so long is declared dead
    coordinator_lease_s  likewise the coordinator, who then is another
    look_every_s         how soon an instance notices what others did
    debounce_s           how long nobody must have come or gone before partitions are planned anew
    rebalance_timeout_s  how long partitions may take to change hands before they are planned anew
    rebalance_tries      how often that is done before it is given up
    forget_after_s       after how long nothing is remembered of an instance that has gone
    assignor             who gets what; `hash_name` is what `thingsboard` hashes with
    """

    lease_s: float = 15.0
    coordinator_lease_s: float = 5.0
    look_every_s: float = 0.2
    debounce_s: float = 0.3
    rebalance_timeout_s: float = 60.0
    rebalance_tries: int = 3
    forget_after_s: float = 3600.0
    assignor: Assignor = Assignor.STICKY
    hash_name: str = DEFAULT_HASH

    def __post_init__(self) -> None:
        for name in ("lease_s", "coordinator_lease_s", "look_every_s", "rebalance_timeout_s", "rebalance_tries"):
            if (value := getattr(self, name)) <= 0:
                raise ConfigurationError(f"{name} is {value:g}; use more than 0")
        if self.look_every_s * 5 > min(self.lease_s, self.coordinator_lease_s):
            raise ConfigurationError(
                f"look_every_s is {self.look_every_s:g}, too seldom for leases of {self.lease_s:g} and "
                f"{self.coordinator_lease_s:g} s; use a fifth of the shorter one, or less"
            )

    @property
    def renew_every_s(self) -> float:
        """Often enough that a lease survives some attempts that fail."""
        return self.lease_s / 5

    @property
    def ending_s(self) -> float:
        """With as much left of its lease an instance brings what it does to an end."""
        return self.lease_s / 3

    @property
    def over_s(self) -> float:
        """With as much left it does nothing any more."""
        return self.lease_s / 20
