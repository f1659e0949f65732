"""`python -m scripts.healthcheck ROLE`: exit code 0 when this container does its work, else 1 and the reason.

Without Django, as it runs every few seconds in each container. Celery's own `inspect ping` is no choice: remote control
is turned off (docs/adr/0005-operations-are-rows.md), so a worker is judged by its connection to the broker.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.request import Request, urlopen

import redis

from queueapi.config import Config
from queuecore.config import load

TIMEOUT_S = 5
SPARK_MASTER_PAGE = "http://127.0.0.1:8080/json/"
SPARK_WORKER_PAGE = "http://127.0.0.1:8081/json/"


class Unhealthy(Exception):
    """Says what is wrong."""


def check_web() -> None:
    fetch_json(f"http://127.0.0.1:{load(Config, os.environ).web_port}/healthz")


def check_celery() -> None:
    """A worker or beat of this container is connected to the broker: another client with our own address."""
    with closing(redis.Redis.from_url(load(Config, os.environ).broker_url, socket_timeout=TIMEOUT_S)) as client:
        me = client.client_info()
        others = (other for other in client.client_list() if int(other["id"]) != int(me["id"]))
        if not any(host_of(other) == host_of(me) for other in others):
            raise Unhealthy("no process here is connected to the broker")


def check_spark_master(page: str = SPARK_MASTER_PAGE) -> None:
    status = fetch_json(page)["status"]
    if status != "ALIVE":
        raise Unhealthy(f"the Spark master is {status}")


def check_spark_worker(page: str = SPARK_WORKER_PAGE) -> None:
    if not fetch_json(page)["masterurl"]:
        raise Unhealthy("the Spark worker is not registered with its master")


def fetch_json(address: str) -> Any:
    """The answer; anything but success raises OSError. The header keeps production mode from redirecting to HTTPS."""
    request = Request(address, headers={"X-Forwarded-Proto": "https"})  # noqa: S310 - our own, loopback
    with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


def host_of(client: dict[str, Any]) -> str:
    return str(client["addr"]).rpartition(":")[0]


CHECKS: dict[str, Callable[[], None]] = {
    "web": check_web,
    "celery": check_celery,
    "spark-master": check_spark_master,
    "spark-worker": check_spark_worker,
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in CHECKS:
        print(f"usage: python -m scripts.healthcheck {{{','.join(CHECKS)}}}", file=sys.stderr)
        return 2
    try:
        CHECKS[arguments[0]]()
    except (Unhealthy, OSError, ValueError, redis.RedisError) as error:
        print(f"unhealthy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
