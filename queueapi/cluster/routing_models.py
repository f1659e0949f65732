from django.db import models


class RoutingVersion(models.Model):
    """Where messages go, from its publication until there is a later one.

    table   as `queuecore.cluster.routing_json` writes it; text, so that equal tables stay equal
    digest  of that text: whether a table is the latest one is known without reading it
    """

    version = models.PositiveBigIntegerField(primary_key=True)
    digest = models.CharField(max_length=64)
    table = models.TextField()
    published_at = models.DateTimeField()

    class Meta:
        ordering = ["-version"]
        constraints = [models.CheckConstraint(condition=models.Q(version__gte=1), name="routing_versions_from_1")]

    def __str__(self) -> str:
        return f"routing version {self.version}"


class RoutingAcknowledgement(models.Model):
    """By which version a producer routes, since when, and until when the others count on it. Version 0: it knows none.
    Not a foreign key: what a producer says of itself is kept whatever is remembered of versions."""

    producer_id = models.CharField(max_length=100, primary_key=True)
    version = models.PositiveBigIntegerField()
    acknowledged_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["producer_id"]

    def __str__(self) -> str:
        return f"{self.producer_id} routes by {self.version}"
