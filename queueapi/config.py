"""Every setting of an installation, each a `SWITCHYARD_*` variable. `docs/reference/settings.md` is made from it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from django.conf import settings

from queuecore.config import setting
from queuecore.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Config:
    mode: Literal["local", "production"] = setting(
        "local", "`production` refuses to start without allowed hosts, and sends cookies over HTTPS only."
    )
    data_dir: Path = setting(Path("var/run"), "Where the embedded parts keep their data, and generated secrets are.")
    cache_dir: Path = setting(Path("~/.cache/switchyard"), "Where downloads such as Kafka's jars are kept.")
    secret_key: str = setting(
        "",
        "Signs sessions. Empty: generated once and kept in the data folder, readable by its owner alone.",
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = setting(
        ("localhost", "127.0.0.1", "[::1]"), "Host names the web server answers to."
    )
    trusted_origins: tuple[str, ...] = setting(
        (), "Origins, such as `https://switchyard.example.org`, from which forms may be posted through a proxy."
    )
    web_host: str = setting("127.0.0.1", "Address the web server listens on.")
    web_port: int = setting(8080, "Port the web server listens on.", minimum=1)
    web_workers: int = setting(1, "Web server processes.", minimum=1)
    database_url: str = setting(
        "", "`postgresql://user:password@host/name`. Empty: SQLite in the data folder.", secret=True
    )
    broker_url: str = setting("", "`redis://host:6379/0` for Celery. Empty: files in the data folder.", secret=True)
    queue_type: Literal["log", "kafka"] = setting("log", "Where messages live.")
    queue_log_acks: Literal["1", "all"] = setting(
        "all", "When the `log` provider acknowledges: handed to the operating system (`1`), or on disk (`all`)."
    )
    queue_kafka_bootstrap_servers: str = setting("localhost:9092", "Kafka brokers, when the queue type is `kafka`.")
    queue_kafka_replication_factor: int = setting(1, "Replicas of each topic that is created on Kafka.", minimum=1)
    spark_master: str = setting(
        "local[*]", "Where Spark jobs run: `local[*]` or `spark://host:7077`.", alias="SPARK_MASTER"
    )
    sample_interval_s: int = setting(5, "How often offsets are sampled, in seconds.", minimum=1)
    pipeline_interval_s: int = setting(10, "How often the Spark job runs, in seconds.", minimum=1)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting("INFO", "The least that is logged.")

    def check(self) -> None:
        """ConfigurationError where values that are fine alone do not go together."""
        if self.mode == "production" and "localhost" in self.allowed_hosts:
            raise ConfigurationError(
                "SWITCHYARD_ALLOWED_HOSTS must name the hosts users type when SWITCHYARD_MODE is production"
            )
        for name, value, schemes in (
            ("SWITCHYARD_DATABASE_URL", self.database_url, ("postgresql://", "postgres://")),
            ("SWITCHYARD_BROKER_URL", self.broker_url, ("redis://", "rediss://")),
        ):
            if value and not value.startswith(schemes):
                raise ConfigurationError(f"{name} must start with {' or '.join(schemes)}")

    def make_data_dir(self) -> None:
        """ConfigurationError where there cannot be a data folder."""
        try:
            self.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"SWITCHYARD_DATA_DIR: '{self.data_dir}' cannot be used as a folder ({error.strerror}); name another"
            ) from error

    @property
    def data(self) -> Path:
        return self.data_dir.expanduser().resolve()


def config() -> Config:
    """The installation's settings, checked when the process started."""
    return settings.SWITCHYARD
