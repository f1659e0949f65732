"""Routing versions, and producers' acknowledgements of them, in the cluster's rows."""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Now

from queueapi.cluster.routing_models import RoutingAcknowledgement, RoutingVersion
from queueapi.cluster.rows import Change, changing, reaching
from queuecore.cluster.routing_json import from_json, to_json
from queuecore.cluster.store import KEPT_VERSIONS
from queuecore.routing import RoutingTable


class _Latest(NamedTuple):
    version: int = 0
    digest: str = ""


class RoutingRows:
    """A RoutingStore."""

    def publish_routing(self, table: RoutingTable) -> int:
        return self._publish(to_json(table), None) or 0

    def publish_routing_after(self, version: int, table: RoutingTable) -> int | None:
        return self._publish(to_json(table), version)

    def _publish(self, text: str, after: int | None) -> int | None:
        digest = hashlib.sha256(text.encode()).hexdigest()
        with reaching():
            latest = _latest()
        if latest.digest != digest and after in (None, latest.version):
            # Only then it is worth a turn, in which nobody else publishes.
            with changing() as change:
                latest = _latest()
                if latest.digest != digest and after in (None, latest.version):
                    return _insert(change, latest.version + 1, text, digest)
        return latest.version if after in (None, latest.version) else None

    def routing_version(self) -> int:
        with reaching():
            return _latest().version

    def routing(self, version: int | None = None) -> RoutingTable | None:
        with reaching():
            rows = RoutingVersion.objects.all() if version is None else RoutingVersion.objects.filter(version=version)
            row = rows.order_by("-version").values_list("version", "table").first()
        return None if row is None else from_json(row[1], row[0])

    def acknowledge(self, producer_id: str, version: int, lease_s: float) -> None:
        """Nearly always that is a sign of life. It waits for nobody, where the database can tell rows apart."""
        until = Now() + timedelta(seconds=lease_s)
        with reaching():
            rows = RoutingAcknowledgement.objects.filter(producer_id=producer_id)
            if rows.filter(version=version).update(lease_expires_at=until):
                return
            if not rows.update(version=version, acknowledged_at=Now(), lease_expires_at=until):
                # Who comes clears away who has gone: there are never many.
                _gone().delete()
                RoutingAcknowledgement.objects.create(
                    producer_id=producer_id, version=version, acknowledged_at=Now(), lease_expires_at=until
                )

    def acknowledgements(self) -> Mapping[str, int]:
        with reaching():
            return dict(living_producers().values_list("producer_id", "version"))

    def yet_to_acknowledge(self, version: int) -> tuple[str, ...]:
        with reaching():
            behind = living_producers().filter(version__lt=version)
            return tuple(behind.order_by("producer_id").values_list("producer_id", flat=True))

    def forget_producer(self, producer_id: str) -> None:
        with reaching():
            RoutingAcknowledgement.objects.filter(producer_id=producer_id).delete()


def living_producers() -> QuerySet[RoutingAcknowledgement]:
    return RoutingAcknowledgement.objects.filter(lease_expires_at__gt=Now())


def _gone() -> QuerySet[RoutingAcknowledgement]:
    return RoutingAcknowledgement.objects.filter(lease_expires_at__lte=Now())


def _latest() -> _Latest:
    row = RoutingVersion.objects.order_by("-version").values_list("version", "digest").first()
    return _Latest() if row is None else _Latest(*row)


def _insert(change: Change, version: int, text: str, digest: str) -> int:
    RoutingVersion.objects.create(version=version, digest=digest, table=text, published_at=change.now)
    used = set(living_producers().values_list("version", flat=True))
    RoutingVersion.objects.filter(version__lte=version - KEPT_VERSIONS).exclude(version__in=used).delete()
    return version
