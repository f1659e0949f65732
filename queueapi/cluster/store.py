"""The cluster's store on the control plane's database, SQLite or PostgreSQL."""

from queueapi.cluster.coordinating import CoordinatorRows
from queueapi.cluster.membership import MemberRows
from queueapi.cluster.operating import OperatorRows
from queueapi.cluster.planning import PlanningRows
from queueapi.cluster.routing_rows import RoutingRows


class DatabaseStore(MemberRows, CoordinatorRows, OperatorRows, PlanningRows, RoutingRows):
    """A ClusterStore. Each thread that uses it has a connection of its own, and closes it at its end."""
