"""Settings: read in one go, checked, and told apart from those that do not exist."""

import dataclasses
from pathlib import Path
from typing import Literal

import pytest

from queueapi.config import Config
from queuecore.cluster.services import ServiceInfo
from queuecore.config import describe, load, setting
from queuecore.errors import ConfigurationError
from queuecore.topics import ServiceType


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    name: str = setting("switchyard", "Text.")
    size: int = setting(10, "A number.", minimum=1, maximum=100)
    enabled: bool = setting(False, "A switch.")
    folder: Path = setting(Path("var"), "A folder.")
    hosts: tuple[str, ...] = setting(("a", "b"), "A list.")
    mode: Literal["local", "production"] = setting("local", "A choice.")
    master: str = setting("local[*]", "Has a second name.", alias="MASTER")
    pin: int = setting(0, "A secret number.", secret=True, minimum=1000)


def problem(environ: dict[str, str], settings_class: type = Sample) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(settings_class, environ)
    return str(caught.value)


def test_defaults_without_any_variable() -> None:
    assert load(Sample, {}) == Sample()


@pytest.mark.parametrize("name", ["SWITCHYARD_SAMPLE_INTERVAL_S", "SWITCHYARD_PIPELINE_INTERVAL_S"])
def test_figures_cannot_be_made_so_seldom_that_they_are_always_old(name) -> None:
    assert name in problem({name: "60"}, Config)


def test_each_type_is_read() -> None:
    loaded = load(
        Sample,
        {
            "SWITCHYARD_NAME": "east",
            "SWITCHYARD_SIZE": "25",
            "SWITCHYARD_ENABLED": "true",
            "SWITCHYARD_FOLDER": "data/east",
            "SWITCHYARD_HOSTS": " one.example.org, two.example.org ,",
            "SWITCHYARD_MODE": "production",
        },
    )

    assert loaded == Sample(
        name="east",
        size=25,
        enabled=True,
        folder=Path("data/east"),
        hosts=("one.example.org", "two.example.org"),
        mode="production",
    )


@pytest.mark.parametrize(
    ("raw", "value"),
    [("1", True), ("YES", True), ("on", True), ("True", True), ("0", False), ("no", False), ("Off", False)],
)
def test_a_switch_has_several_spellings(raw: str, value: bool) -> None:
    assert load(Sample, {"SWITCHYARD_ENABLED": raw}).enabled is value


@pytest.mark.parametrize(
    ("variable", "raw", "reason"),
    [
        ("SWITCHYARD_SIZE", "many", "'many' is not a whole number"),
        ("SWITCHYARD_SIZE", "", "'' is not a whole number"),
        ("SWITCHYARD_SIZE", "0", "'0' is below 1"),
        ("SWITCHYARD_SIZE", "101", "'101' is above 100"),
        ("SWITCHYARD_ENABLED", "perhaps", "'perhaps' is neither true nor false"),
        ("SWITCHYARD_MODE", "Production", "'Production' is not one of local, production"),
    ],
)
def test_a_wrong_value_is_named_with_its_variable_and_the_reason(variable: str, raw: str, reason: str) -> None:
    assert problem({variable: raw}) == f"{variable}: {reason}"


@pytest.mark.parametrize("size", [1, 100])
def test_the_limits_themselves_are_fine(size: int) -> None:
    assert load(Sample, {"SWITCHYARD_SIZE": str(size)}).size == size


def test_everything_wrong_is_reported_at_once() -> None:
    message = problem({"SWITCHYARD_SIZE": "many", "SWITCHYARD_MODE": "prod", "SWITCHYARD_SIZES": "1"})

    assert message.split("; ")[:3] == [
        "SWITCHYARD_SIZE: 'many' is not a whole number",
        "SWITCHYARD_MODE: 'prod' is not one of local, production",
        "SWITCHYARD_SIZES is not a setting",
    ]


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("SWITCHYARD_DATABSE_URL", "SWITCHYARD_DATABASE_URL"),
        ("SWITCHYARD_WEB_PROT", "SWITCHYARD_WEB_PORT"),
        ("SWITCHYARD_KAFKA_BOOTSTRAP_SERVERS", "SWITCHYARD_QUEUE_KAFKA_BOOTSTRAP_SERVERS"),
    ],
)
def test_an_unknown_variable_suggests_the_right_one(typo: str, meant: str) -> None:
    assert problem({typo: "x"}, Config) == f"{typo} is not a setting; did you mean {meant}?"


def test_a_variable_that_resembles_nothing_is_refused_without_a_guess() -> None:
    assert problem({"SWITCHYARD_XYZZY_PLUGH_42": "x"}) == "SWITCHYARD_XYZZY_PLUGH_42 is not a setting"


def test_variables_of_others_are_left_alone() -> None:
    assert load(Sample, {"PATH": "/bin", "switchyard_size": "2", "OTHER_SIZE": "many"}) == Sample()


def test_a_file_in_the_folder_of_nobody_is_refused() -> None:
    assert "SWITCHYARD_CONFIG_FILE: '~nobody-of-this-name/x.yml'" in problem(
        {"SWITCHYARD_CONFIG_FILE": "~nobody-of-this-name/x.yml"}
    )


def test_the_second_name_counts_only_without_the_first() -> None:
    assert load(Sample, {"MASTER": "spark://a:7077"}).master == "spark://a:7077"
    assert load(Sample, {"MASTER": "spark://a:7077", "SWITCHYARD_MASTER": "local[2]"}).master == "local[2]"
    assert load(Config, {"SPARK_MASTER": "spark://a:7077"}).spark_master == "spark://a:7077"


def test_a_problem_is_reported_under_the_name_that_was_set() -> None:
    @dataclasses.dataclass(frozen=True)
    class Aliased:
        port: int = setting(1, "A port.", alias="PORT")

    assert problem({"PORT": "x"}, Aliased) == "PORT: 'x' is not a whole number"


@pytest.mark.parametrize("value", ["hunter2", "999"])
def test_a_secret_is_never_part_of_a_message(value: str) -> None:
    message = problem({"SWITCHYARD_PIN": value, "SWITCHYARD_PINN": value})

    assert message.startswith("SWITCHYARD_PIN: its value is ")
    assert value not in message


def test_a_description_of_every_setting() -> None:
    described = {info.variable: info for info in describe(Sample)}

    assert {name: (info.kind, info.default) for name, info in described.items()} == {
        "SWITCHYARD_NAME": ("text", "switchyard"),
        "SWITCHYARD_SIZE": ("whole number", "10"),
        "SWITCHYARD_ENABLED": ("true or false", "False"),
        "SWITCHYARD_FOLDER": ("folder", "var"),
        "SWITCHYARD_HOSTS": ("comma-separated list", "a,b"),
        "SWITCHYARD_MODE": ("local \\| production", "local"),
        "SWITCHYARD_MASTER": ("text", "local[*]"),
        "SWITCHYARD_PIN": ("whole number", "0"),
    }
    assert described["SWITCHYARD_MASTER"].alias == "MASTER"
    assert described["SWITCHYARD_PIN"].secret
    assert not described["SWITCHYARD_NAME"].secret


def test_settings_cannot_be_changed_once_loaded() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(Config, {}).web_port = 1  # type: ignore[misc]


def test_the_defaults_go_together() -> None:
    load(Config, {}).check()


def test_longer_stretches_are_kept_as_long_as_those_they_are_made_of() -> None:
    with pytest.raises(
        ConfigurationError, match=r"HOUR_RETENTION_DAYS: is 3; use no less than 5, the .*MINUTE_RETENTI"
    ):
        load(Config, {"SWITCHYARD_MINUTE_RETENTION_DAYS": "5", "SWITCHYARD_HOUR_RETENTION_DAYS": "3"}).check()
    with pytest.raises(ConfigurationError, match=r"DAY_RETENTION_DAYS: is 59; use no less than 60"):
        load(Config, {"SWITCHYARD_DAY_RETENTION_DAYS": "59"}).check()


def test_yesterday_s_minutes_are_kept() -> None:
    """Those that are stored after midnight would else never be part of their hour and day."""
    assert "SWITCHYARD_MINUTE_RETENTION_DAYS" in problem({"SWITCHYARD_MINUTE_RETENTION_DAYS": "1"}, Config)


def test_production_wants_the_hosts_users_type() -> None:
    with pytest.raises(ConfigurationError, match="SWITCHYARD_ALLOWED_HOSTS"):
        load(Config, {"SWITCHYARD_MODE": "production"}).check()

    load(Config, {"SWITCHYARD_MODE": "production", "SWITCHYARD_ALLOWED_HOSTS": "switchyard.example.org"}).check()


@pytest.mark.parametrize(
    ("variable", "wrong", "right"),
    [
        ("SWITCHYARD_DATABASE_URL", "mysql://root:hunter2@db/x", "postgresql://switchyard:hunter2@db/switchyard"),
        ("SWITCHYARD_DATABASE_URL", "hunter2", "postgres://switchyard:hunter2@db/switchyard"),
        ("SWITCHYARD_BROKER_URL", "amqp://guest:hunter2@mq", "redis://:hunter2@broker:6379/0"),
        ("SWITCHYARD_BROKER_URL", "http://hunter2", "rediss://:hunter2@broker:6379/0"),
    ],
)
def test_an_address_of_the_wrong_kind_is_refused_without_showing_it(variable: str, wrong: str, right: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{variable} must start with") as caught:
        load(Config, {variable: wrong}).check()
    assert "hunter2" not in str(caught.value)

    load(Config, {variable: right}).check()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SWITCHYARD_DATABASE_URL", "postgresql://switchyard:hunter2/x@db/switchyard"),
        ("SWITCHYARD_DATABASE_URL", "postgresql://switchyard:hunter2@db:port/switchyard"),
        ("SWITCHYARD_DATABASE_URL", "postgresql://switchyard:hunter2@[db/switchyard"),
        ("SWITCHYARD_DATABASE_URL", "postgresql://switchyard:hunter2@db"),
        ("SWITCHYARD_BROKER_URL", "redis://:hunter2@broker:70000/0"),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{variable} ") as caught:
        load(Config, {variable: value}).check()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("origin", ["foo", "foo.example.org:443", "ftp://foo", "https://", "https://foo/path"])
def test_an_origin_has_a_scheme_and_a_host(origin: str) -> None:
    with pytest.raises(ConfigurationError, match=f"SWITCHYARD_TRUSTED_ORIGINS: '{origin}' must be scheme://host"):
        load(Config, {"SWITCHYARD_TRUSTED_ORIGINS": origin}).check()

    load(Config, {"SWITCHYARD_TRUSTED_ORIGINS": "https://a.example.org, https://*.b.org,http://[::1]:8080"}).check()


@pytest.mark.parametrize("address", ["", "127.0.0.1:9464", "localhost:1", "[::1]:65535", "0.0.0.0:9464", " a.b:80 "])
def test_an_address_to_listen_on_is_a_host_and_a_port(address: str) -> None:
    assert load(Config, {"SWITCHYARD_METRICS_LISTEN": address}).metrics_listen == address.strip()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        *((one, "use host:port, as 127.0.0.1:9464") for one in ("9464", ":9464", "::1:9464", "a:", "http://a:1")),
        *((one, "has no port from 1 to 65535") for one in ("a:0", "[::1]:65536")),
    ],
)
def test_an_address_nobody_can_listen_on_is_refused(address: str, reason: str) -> None:
    message = problem({"SWITCHYARD_METRICS_LISTEN": address}, Config)
    assert message.startswith(f"SWITCHYARD_METRICS_LISTEN: '{address}' ")
    assert message.endswith(reason)


def test_production_wants_a_long_secret_key() -> None:
    production = {"SWITCHYARD_MODE": "production", "SWITCHYARD_ALLOWED_HOSTS": "switchyard.example.org"}
    short = "0123456789abcdef0123456789abcde"
    with pytest.raises(ConfigurationError, match="SWITCHYARD_SECRET_KEY must have at least 32") as caught:
        load(Config, {**production, "SWITCHYARD_SECRET_KEY": short}).check()
    assert short not in str(caught.value)

    load(Config, {**production, "SWITCHYARD_SECRET_KEY": short + "f"}).check()
    load(Config, {"SWITCHYARD_SECRET_KEY": short}).check()


def test_values_that_do_not_go_together_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(Config, {"SWITCHYARD_MODE": "production", "SWITCHYARD_TRUSTED_ORIGINS": "foo"}).check()
    assert [part.split()[0].rstrip(":") for part in str(caught.value).split("; ")] == [
        "SWITCHYARD_ALLOWED_HOSTS",
        "SWITCHYARD_TRUSTED_ORIGINS",
    ]


def test_a_folder_we_make_is_for_its_owner_alone_and_one_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    made = Config(data_dir=tmp_path / "made")
    assert made.folder().stat().st_mode & 0o777 == 0o700
    assert made.folder("celery", "messages").parent.stat().st_mode & 0o777 == 0o700

    found = tmp_path / "found"
    found.mkdir()
    found.chmod(0o755)
    assert Config(data_dir=found).folder().stat().st_mode & 0o777 == 0o755


def test_the_data_folder_is_absolute() -> None:
    assert load(Config, {"SWITCHYARD_DATA_DIR": "some/where"}).data == Path("some/where").resolve()
    assert load(Config, {"SWITCHYARD_DATA_DIR": "~/where"}).data == (Path.home() / "where").resolve()


def test_a_lease_is_not_shorter_than_a_session() -> None:
    short = {"SWITCHYARD_CLUSTER_LEASE_MS": "9000"}
    with pytest.raises(ConfigurationError, match="SWITCHYARD_CLUSTER_LEASE_MS: is 9000; use no less than 10000"):
        load(Config, short).check()
    load(Config, {**short, "SWITCHYARD_QUEUE_LOG_SESSION_TIMEOUT_MS": "9000"}).check()


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("SERVICE_ID", "core 1", "cannot end the name of a topic"),
        ("SERVICE_WEIGHT", "0", "use more than 0 and at most 1000"),
        ("SERVICE_WEIGHT", "much", "is not a number"),
        ("SERVICE_TYPES", "TB_CORE,TB_COR", "there is no service type 'TB_COR'"),
        ("CLUSTER_ASSIGNOR", "random", "is not one of sticky, thingsboard"),
    ],
)
def test_an_instance_that_could_not_announce_itself_is_refused(variable: str, value: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(Config, {f"SWITCHYARD_{variable}": value}).check()
    assert told in str(caught.value)


def test_an_instance_announces_itself_as_it_is_set() -> None:
    loaded = load(
        Config,
        {
            "SWITCHYARD_SERVICE_TYPES": "tb-rule-engine, EDQS",
            "SWITCHYARD_SERVICE_WEIGHT": "2.5",
            "SWITCHYARD_SERVICE_LABELS": "gpu,zone-a",
            "SWITCHYARD_SERVICE_DEDICATED_TO": "gold",
        },
    )
    info = loaded.service.info("node-7")
    assert info == ServiceInfo(
        "node-7",
        (ServiceType.TB_RULE_ENGINE, ServiceType.EDQS),
        2.5,
        frozenset({"gpu", "zone-a"}),
        frozenset({"gold"}),
    )
    assert load(Config, {}).service.info("a").service_types == tuple(ServiceType)
