"""Every setting of an installation, each a `SWITCHYARD_*` variable. `docs/reference/settings.md` is made from it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from django.conf import settings

from queueapi.cluster_settings import ClusterSettings, ServiceSettings
from queueapi.email_settings import EmailSettings
from queueapi.listening import check_listen
from queueapi.rest_settings import RestSettings
from queuecore.catalogue import catalogue
from queuecore.config import section, setting
from queuecore.config.provider_settings import StoredSettings
from queuecore.config.queue_options import check_kafka, consumer_options, producer_options
from queuecore.config.queue_tree import QueueSettings
from queuecore.errors import ConfigurationError, QueueError

SHORTEST_SECRET_KEY = 32
LONGEST_INTERVAL_S = 20
LONGEST_ENVIRONMENT_NAME = 40

_ORIGIN = re.compile(r"https?://[^/?#@\s]+")


@dataclass(frozen=True, slots=True)
class Config:
    mode: Literal["local", "production"] = setting(
        "local", "`production` refuses to start without allowed hosts, and sends cookies over HTTPS only."
    )
    environment_name: str = setting(
        "",
        "What this installation is called, in a band above every page of the console and in the browser's tabs, such "
        "as `Staging EU`; at most 40 characters. Empty: its mode.",
    )
    environment_colour: Literal["", "red", "orange", "green", "blue", "purple", "grey"] = setting(
        "", "The colour of that band. Empty: red in production, else blue, and none without a name."
    )
    data_dir: Path = setting(Path("var/run"), "Where the embedded parts keep their data, and generated secrets are.")
    cache_dir: Path = setting(Path("~/.cache/switchyard"), "Where downloads such as Kafka's jars are kept.")
    secret_key: str = setting(
        "",
        "Signs sessions; in production 32 characters or more. Empty: generated once and kept in the data folder.",
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = setting(
        ("localhost", "127.0.0.1", "[::1]"), "Host names the web server answers to."
    )
    trusted_origins: tuple[str, ...] = setting(
        (), "Origins, such as `https://switchyard.example.org`, from which forms may be posted through a proxy."
    )
    web_host: str = setting("127.0.0.1", "Address the web server listens on.")
    web_port: int = setting(8080, "Port the web server listens on.", minimum=1, maximum=65535)
    public_url: str = setting(
        "",
        "Where people reach the console, such as `https://switchyard.example.org`: links in alerts begin so. Empty: "
        "`http://`, the web server's address and port.",
    )
    web_workers: int = setting(1, "Web server processes.", minimum=1)
    database_url: str = setting(
        "", "`postgresql://user:password@host/name`. Empty: SQLite in the data folder.", secret=True
    )
    broker_url: str = setting("", "`redis://host:6379/0` for Celery. Empty: files in the data folder.", secret=True)
    spark_master: str = setting(
        "local[*]", "Where Spark jobs run: `local[*]` or `spark://host:7077`.", alias="SPARK_MASTER"
    )
    handlers: tuple[str, ...] = setting(
        (), "Modules, such as `shop.handlers`, that register handlers of your own; web and workers import them."
    )
    webhook_allow_private: bool = setting(
        False,
        "Whether queues and alert channels may have webhooks to addresses that are not on the open network, such as "
        "this machine's; each has to say `allow_private` too.",
    )
    consumer_hosts: int = setting(
        1, "How many consumer hosts `manage.py up` starts. They share the partitions of all queues.", minimum=1
    )
    # At most so that what is sampled is in the figures before those count as old.
    sample_interval_s: int = setting(
        5, "How often offsets are sampled, in seconds; at most 20.", minimum=1, maximum=LONGEST_INTERVAL_S
    )
    pipeline_interval_s: int = setting(
        10, "How often the Spark job runs, in seconds; at most 20.", minimum=1, maximum=LONGEST_INTERVAL_S
    )
    pipeline_timeout_s: int = setting(
        900,
        "After how many seconds a run of the Spark job, or a day of a back-fill, is ended, and its session with it.",
        minimum=10,
    )
    event_retention_days: int = setting(
        7, "For how many days events are kept in Parquet: so far back summaries can be made anew.", minimum=2
    )
    minute_retention_days: int = setting(
        2,
        "After how many days summaries of single minutes are removed. Hours and days are made of them, so that those "
        "of yesterday have to be there.",
        minimum=2,
    )
    hour_retention_days: int = setting(
        60, "After how many days summaries of hours are removed; no sooner than those of minutes.", minimum=2
    )
    day_retention_days: int = setting(
        730, "After how many days summaries of days are removed; no sooner than those of hours.", minimum=2
    )
    metrics_interval_s: int = setting(
        10,
        "How often processes report what they consume and publish to the topic `queue.metrics`, in seconds; 0: never.",
        minimum=0,
    )
    metrics_listen: str = setting(
        "",
        "Address at which a process that consumes, publishes or sends requests shows Prometheus its metrics. Two "
        "cannot share one: of `manage.py up` the demo's transport has it, the web server the next port, consumer hosts "
        "those after it. Empty: none, but for the demo's transport 127.0.0.1:9464.",
        parse=check_listen,
        kind="host:port",
    )
    metrics_lag_by: Literal["partition", "queue"] = setting(
        "partition",
        "What the web server's `/metrics` tells the lag of. `queue` where there are more partitions than Prometheus "
        "should keep.",
    )
    letter_retention_days: int = setting(90, "After how many days dead letters are removed from the index.", minimum=1)
    alert_interval_s: int = setting(15, "How often alert rules are evaluated, in seconds.", minimum=1)
    alert_retention_days: int = setting(90, "After how many days resolved alerts are removed.", minimum=1)
    session_minutes: int = setting(
        480, "After how many minutes without a click somebody has to sign in again.", minimum=1
    )
    lockout_failures: int = setting(
        5, "After how many wrong passwords in a row a user name is locked out at an address.", minimum=1
    )
    lockout_minutes: int = setting(15, "For how many minutes a lock-out lasts.", minimum=1)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting("INFO", "The least that is logged.")
    email: EmailSettings = field(default=EmailSettings(), metadata=section())
    rest: RestSettings = field(default=RestSettings(), metadata=section())
    service: ServiceSettings = field(default=ServiceSettings(), metadata=section())
    cluster: ClusterSettings = field(default=ClusterSettings(), metadata=section())
    queue: QueueSettings = field(default=QueueSettings(), metadata=section())

    def check(self) -> None:
        """ConfigurationError, listing everything wrong, where values are not usable or do not go together."""
        checks = (
            self._production_problems,
            self._environment_problems,
            self._address_problems,
            self._module_problems,
            self._queue_problems,
            self._cluster_problems,
            self._retention_problems,
        )
        if problems := [problem for check in checks for problem in check()]:
            raise ConfigurationError("; ".join(problems))

    def _production_problems(self) -> Iterator[str]:
        if self.mode != "production":
            return
        if "localhost" in self.allowed_hosts:
            yield "SWITCHYARD_ALLOWED_HOSTS must name the hosts users type when SWITCHYARD_MODE is production"
        if self.secret_key and len(self.secret_key) < SHORTEST_SECRET_KEY:
            yield (
                f"SWITCHYARD_SECRET_KEY must have at least {SHORTEST_SECRET_KEY} characters when SWITCHYARD_MODE is "
                "production; leave it empty to have one generated"
            )

    def _environment_problems(self) -> Iterator[str]:
        if len(self.environment_name) > LONGEST_ENVIRONMENT_NAME or not self.environment_name.isprintable():
            yield f"SWITCHYARD_ENVIRONMENT_NAME must be one line of at most {LONGEST_ENVIRONMENT_NAME} characters"

    def _address_problems(self) -> Iterator[str]:
        for name, value, schemes in (
            ("SWITCHYARD_DATABASE_URL", self.database_url, ("postgresql://", "postgres://")),
            ("SWITCHYARD_BROKER_URL", self.broker_url, ("redis://", "rediss://")),
        ):
            if value and not value.startswith(schemes):
                yield f"{name} must start with {' or '.join(schemes)}"
            elif not _is_address(value):
                yield f"{name} cannot be read as an address; write special characters of its password as %XX"
        if self.database_url and _is_address(self.database_url) and not urlsplit(self.database_url).path.strip("/"):
            yield "SWITCHYARD_DATABASE_URL must end with the database's name, as in postgresql://host/name"
        for origin in self.trusted_origins:
            if not _ORIGIN.fullmatch(origin):
                yield f"SWITCHYARD_TRUSTED_ORIGINS: '{origin}' must be scheme://host, as https://switchyard.example.org"
        if self.public_url and not _ORIGIN.fullmatch(self.public_url):
            yield f"SWITCHYARD_PUBLIC_URL: '{self.public_url}' must be scheme://host, as https://switchyard.example.org"

    def _module_problems(self) -> Iterator[str]:
        for name in self.handlers:
            if not all(part.isidentifier() for part in name.split(".")):
                yield f"SWITCHYARD_HANDLERS: '{name}' is no module's name; use one such as shop.handlers"

    def _queue_problems(self) -> Iterator[str]:
        if self.queue.type == "in-memory":
            yield "SWITCHYARD_QUEUE_TYPE: an installation has several processes; choose log or kafka, not in-memory"
        elif isinstance(client := self.queue.client, StoredSettings) and client.acks == "0":
            yield f"SWITCHYARD_QUEUE_{self.queue.type.upper()}_ACKS: dead letters must be acknowledged; choose 1 or all"
        # What two of them find wrong is wrong once.
        yield from dict.fromkeys(f"SWITCHYARD_QUEUE_*: {error}" for error in self._queue_errors())

    def _cluster_problems(self) -> Iterator[str]:
        try:
            self.service.info(self.service.id or "this")
        except QueueError as error:
            yield f"SWITCHYARD_SERVICE_*: {error}"
        session_ms = self.queue.client.session_timeout_ms
        if self.cluster.lease_ms < session_ms:
            # Else a partition's next owner would wait for the one before to be missed by the provider.
            yield (
                f"SWITCHYARD_CLUSTER_LEASE_MS: is {self.cluster.lease_ms}; use no less than {session_ms}, the "
                "session.timeout.ms of the queues' provider, or lower that"
            )

    def _retention_problems(self) -> Iterator[str]:
        """Longer stretches are made of the rows of shorter ones, which must not outlive them."""
        kept = {name: getattr(self, f"{name}_retention_days") for name in ("minute", "hour", "day")}
        for (shorter, days), (longer, their_days) in pairwise(kept.items()):
            if their_days < days:
                yield (
                    f"SWITCHYARD_{longer.upper()}_RETENTION_DAYS: is {their_days}; use no less than {days}, the "
                    f"SWITCHYARD_{shorter.upper()}_RETENTION_DAYS, or lower that"
                )

    def _queue_errors(self) -> Iterator[QueueError]:
        uses: list[Callable[[QueueSettings], object]] = [catalogue, producer_options, consumer_options]
        if self.queue.type == "kafka":
            uses.append(check_kafka)
        for use in uses:
            try:
                use(self.queue)
            except QueueError as error:
                yield error

    def folder(self, *below: str) -> Path:
        """The data folder, or one below it; made, for its owner alone, where it is missing.

        ConfigurationError where it cannot be made.
        """
        path = self.data
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in below:
                path /= name
                path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise unusable_data_dir(path, error) from error
        return path

    @property
    def console_url(self) -> str:
        """What addresses of the console's pages begin with, for people who follow a link."""
        return self.public_url or f"http://{self.web_host}:{self.web_port}"

    @property
    def data(self) -> Path:
        return self.data_dir.expanduser().resolve()


def unusable_data_dir(path: Path, error: OSError) -> ConfigurationError:
    """What to raise where a file or folder that must be in the data folder cannot be there."""
    return ConfigurationError(
        f"SWITCHYARD_DATA_DIR: '{path}' cannot be used ({error.strerror}); mend that or name another folder"
    )


def _is_address(value: str) -> bool:
    try:
        urlsplit(value).port  # noqa: B018 - read for what it raises
    except ValueError:
        return False
    return True


def config() -> Config:
    """The installation's settings, checked when the process started."""
    return settings.SWITCHYARD
