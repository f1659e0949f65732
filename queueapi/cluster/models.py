import uuid
from collections.abc import Container

from django.db import models
from django.utils import timezone

from queueapi.choices import FINAL_REBALANCE_STATES, RebalanceState
from queueapi.cluster.routing_models import RoutingAcknowledgement, RoutingVersion  # noqa: F401 - a part of the models
from queuecore.cluster.services import Move, ServiceInfo
from queuecore.topics import ServiceType


class ClusterState(models.Model):
    """The one row that whoever changes the cluster locks.

    version      rises with every change of who is there, who owns what and who should
    epoch        the highest that was ever given
    planned_for  what the partitions' targets were last planned for
    stamp        another one whenever there are other partitions, or otherwise described ones; never the same twice.
                 Empty: nobody knows
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    version = models.PositiveBigIntegerField(default=0)
    epoch = models.PositiveBigIntegerField(default=0)
    planned_for = models.CharField(max_length=200, blank=True, default="")
    stamp = models.CharField(max_length=32, blank=True, default="")

    coordinator = models.CharField(max_length=100, blank=True, default="")
    coordinator_incarnation = models.CharField(max_length=32, blank=True, default="")
    term = models.PositiveBigIntegerField(default=0)
    coordinator_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="cluster_has_one_state")]

    def __str__(self) -> str:
        return f"version {self.version}"


class ServiceInstance(models.Model):
    """A service instance. Its lease says until when the others believe in it; one that has gone is remembered for a
    while."""

    service_id = models.CharField(max_length=100, primary_key=True)
    incarnation = models.CharField(max_length=32)
    service_types = models.JSONField()
    weight = models.FloatField(default=1)
    labels = models.JSONField(default=list)
    dedicated_to = models.JSONField(default=list)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    is_draining = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(db_index=True)
    gone_at = models.DateTimeField(null=True, db_index=True)
    is_lost = models.BooleanField(default=False)

    class Meta:
        ordering = ["service_id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(weight__gt=0), name="service_has_weight"),
            # It left, or was declared dead.
            models.CheckConstraint(
                condition=models.Q(is_lost=False) | models.Q(gone_at__isnull=False), name="service_lost_is_gone"
            ),
        ]

    def __str__(self) -> str:
        return self.service_id

    @property
    def is_alive(self) -> bool:
        return self.gone_at is None and self.lease_expires_at > timezone.now()

    @property
    def info(self) -> ServiceInfo:
        return ServiceInfo(
            self.service_id,
            tuple(ServiceType(kind) for kind in self.service_types),
            self.weight,
            frozenset(self.labels),
            frozenset(self.dedicated_to),
        )


class Partition(models.Model):
    """A partition that one service instance is to consume: who has it, under which epoch, and who should have it.

    idle_since  since when nobody consumes it, if so
    paused_ms   for how long nobody did before its owner took it
    is_removed  there is no such partition any more; the row goes when its owner has released it
    """

    name = models.CharField(max_length=260, primary_key=True)
    service_type = models.CharField(max_length=32)
    queue = models.CharField(max_length=100)
    number = models.PositiveIntegerField()
    tenant = models.UUIDField()
    profile = models.CharField(max_length=100, blank=True, default="")
    label = models.CharField(max_length=100, blank=True, default="")

    owner = models.CharField(max_length=100, null=True, db_index=True)
    epoch = models.PositiveBigIntegerField(default=0)
    target = models.CharField(max_length=100, null=True, db_index=True)
    taken_at = models.DateTimeField(null=True)
    idle_since = models.DateTimeField(null=True)
    paused_ms = models.PositiveIntegerField(default=0)
    is_removed = models.BooleanField(default=False)
    # Why nobody may have it, if so.
    unassigned = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(owner__isnull=True) | models.Q(epoch__gt=0), name="partition_owned_under_an_epoch"
            ),
            # An epoch is given once, to one partition.
            models.UniqueConstraint(
                fields=["epoch"], condition=models.Q(epoch__gt=0), name="partition_epoch_given_once"
            ),
            models.CheckConstraint(
                condition=models.Q(is_removed=False) | models.Q(target__isnull=True),
                name="partition_removed_is_nobodys",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Rebalance(models.Model):
    """A change of who consumes what, as `queuecore.cluster.rebalances.Rebalance` says."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=16, choices=RebalanceState)
    cause = models.CharField(max_length=16)
    reason = models.TextField()
    requested_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField(db_index=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    moves = models.PositiveIntegerField(default=0)
    placements = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    is_unwanted = models.BooleanField(default=False)
    error = models.TextField(blank=True, default="")
    balance = models.JSONField(default=dict)
    listed = models.JSONField(default=list)
    pause_ms = models.PositiveIntegerField(null=True)
    longest_pause_ms = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(finished_at__isnull=False, state__in=FINAL_REBALANCE_STATES)
                | (models.Q(finished_at__isnull=True) & ~models.Q(state__in=FINAL_REBALANCE_STATES)),
                name="rebalance_finished_exactly_when_final",
            ),
            models.CheckConstraint(condition=models.Q(done__lte=models.F("total")), name="rebalance_done_within_total"),
            # One at a time is under way.
            models.UniqueConstraint(
                models.Value(1),
                condition=models.Q(state__in=(RebalanceState.RUNNING, RebalanceState.RETRYING)),
                name="rebalance_one_under_way",
            ),
        ]

    def __str__(self) -> str:
        return self.reason

    @property
    def state_choice(self) -> RebalanceState:
        return RebalanceState(self.state)

    @property
    def percent(self) -> int:
        return self.done * 100 // self.total if self.total else 0

    def may_have_moved(self, names: Container[str]) -> bool:
        """Whether one of these partitions is among its moves, or nobody knows, as not all are listed."""
        return self.moves > len(self.listed) or any(name in names for name, *_ in self.listed)

    @property
    def moves_listed(self) -> list[Move]:
        return [Move(*one) for one in self.listed]
