"""`manage.py plan_assignment`: who would consume what, from JSON to JSON."""

import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

ROOT = Path(__file__).parents[2]
TENANT = "784f394c-42b6-435a-983c-b7beff2784f9"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command on this input, JSON or text."""

    def run(given: Any, *arguments: str) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO(given if isinstance(given, str) else json.dumps(given)))
        output = io.StringIO()
        try:
            call_command("plan_assignment", *arguments, stdout=output)
        except CommandError:
            assert output.getvalue() == ""
            raise
        return json.loads(output.getvalue())

    return run


def names(count: int) -> list[str]:
    return [f"tb_rule_engine.main.{number}" for number in range(count)]


def test_plain_names_are_divided_evenly_and_what_can_stay_stays(planned: Any) -> None:
    current = dict.fromkeys(names(4), "a") | {names(6)[4]: "gone"}
    made = planned({"services": ["a", "b"], "partitions": names(6), "current": current})
    assert Counter(made["assignment"].values()) == {"a": 3, "b": 3}
    assert len(made["moves"]) == 2
    assert {"partition": names(6)[4], "from": "gone", "to": "b"} in made["moves"]
    assert made["unassigned"] == {}
    assert made["balance"]["before"]["services"]["a"] == {"count": 4, "share": 3.0}
    assert made["balance"]["after"] == {
        "services": {"a": {"count": 3, "share": 3.0}, "b": {"count": 3, "share": 3.0}},
        "largest_deviation": 0.0,
    }


def test_services_and_partitions_in_full(planned: Any) -> None:
    services = [
        {"id": "heavy", "weight": 3},
        {"service_id": "light", "service_types": ["tb-rule-engine"], "weight": 1.0},
        {"id": "own", "dedicated_to": [TENANT.upper(), "gold"]},
        {"id": "gpu", "labels": ["gpu"], "service_types": ["EDQS"]},
    ]
    partitions = [
        *({"name": f"p{number}", "queue": "Main", "number": number} for number in range(4)),
        {"id": "theirs", "tenant": TENANT},
        {"name": "golden", "tenant": "a8098c1a-f86e-11da-bd1a-00112444be1e", "profile": "gold"},
        {"name": "index", "service_type": "EDQS", "label": "gpu"},
        {"name": "lost", "service_type": "TB_CORE", "label": "gpu"},
    ]
    made = planned({"services": services, "partitions": partitions})
    assert Counter(made["assignment"].values()) == {"heavy": 3, "light": 1, "own": 2, "gpu": 1}
    assert {made["assignment"][name] for name in ("theirs", "golden")} == {"own"}
    assert made["assignment"]["index"] == "gpu"
    assert made["unassigned"] == {"lost": "no service of type TB_CORE has the label 'gpu'"}
    assert made["moves"] == []


def test_without_services_nothing_is_assigned(planned: Any) -> None:
    made = planned({"services": [], "partitions": ["p"], "current": {"p": "gone"}})
    assert made == {
        "assignment": {},
        "moves": [],
        "unassigned": {"p": "there is no service"},
        "balance": {side: {"services": {}, "largest_deviation": 0.0} for side in ("before", "after")},
    }


@pytest.mark.parametrize(("arguments", "key"), [(["--assignor", "thingsboard"], {}), ([], {"assignor": "thingsboard"})])
def test_thingsboards_placement_by_the_numbers_at_the_ends_of_the_names(
    planned: Any, arguments: list[str], key: dict[str, str]
) -> None:
    made = planned({"services": ["s2", "s0", "s1"], "partitions": names(10), **key}, *arguments)
    assert [made["assignment"][name] for name in names(10)] == [f"s{index}" for index in "2012012012"]


def test_the_command_line_is_before_the_input(planned: Any) -> None:
    given = {"services": ["a", "b"], "partitions": ["p0"], "current": {"p0": "a"}, "assignor": "thingsboard"}
    assert planned(given, "--assignor", "sticky")["moves"] == []


def test_another_hash_function(planned: Any) -> None:
    given = {"services": [f"s{n}" for n in range(5)], "partitions": names(4), "assignor": "thingsboard"}
    made = planned(given, "--hash", "murmur3_32")
    assert list(made["assignment"].values()) == ["s2", "s1", "s0", "s4"]


def one_service(**fields: Any) -> dict[str, Any]:
    return {"services": [{"id": "a", **fields}], "partitions": []}


def one_partition(**fields: Any) -> dict[str, Any]:
    return {"services": ["a"], "partitions": [{"name": "p", **fields}]}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("", "the input is no JSON: Expecting value: line 1"),
        ('{"services": [', "the input is no JSON"),
        ("[" * 100_000, "nested too deeply"),
        (f'{{"services": {"9" * 5_000}}}', "a number of too many digits"),
        ('{"services": [], "partitions": [], "services": []}', "'services' is there 2 times"),
        ('{"services": [{"id": "a", "weight": NaN}], "partitions": []}', "NaN is no number"),
        ([], r"the input is \[\]; give an object"),
        ({"partitions": []}, "the input has no 'services'"),
        ({"services": []}, "the input has no 'partitions'"),
        ({"services": [], "partitions": [], "curent": {}}, "unknown key 'curent'; did you mean 'current'?"),
        ({"services": {}, "partitions": []}, "services is {}; give a list"),
        ({"services": [7], "partitions": []}, r"services\[0\] is 7; give an id or an object"),
        ({"services": ["a", "b", "a"], "partitions": []}, "services: 'a' is there 2 times"),
        ({"services": ["a"], "partitions": ["p", {"id": "p"}]}, "partitions: 'p' is there 2 times"),
        ({"services": [""], "partitions": []}, r"services\[0\].id is ''; give a text that is not empty"),
        (
            {"services": ["a b"], "partitions": []},
            r"services\[0\]: 'a b' is no service id: .* use ASCII letters, digits",
        ),
        ({"services": [{"weight": 1}], "partitions": []}, r"services\[0\] has no 'id'"),
        (one_service(service_id="b"), "both 'id' and 'service_id'"),
        (one_service(wieght=1), r"services\[0\] has an unknown key 'wieght'; did you mean 'weight'?"),
        (one_service(weight=-1), r"services\[0\]: service a has the weight -1; use more than 0"),
        (one_service(weight="2"), r"services\[0\].weight is '2'; give a number"),
        (one_service(weight=True), r"services\[0\].weight is true; give a number"),
        (one_service(weight=10**400), "give a number that is less large"),
        (one_service(labels="gpu"), r"services\[0\].labels is 'gpu'; give a list"),
        (one_service(labels=[None]), r"services\[0\].labels\[0\] is null; give a text"),
        (one_service(service_types=[]), "of no service type"),
        (one_service(service_types=["CORE"]), r"services\[0\].service_types\[0\]: there is no service type 'CORE'"),
        (one_partition(service_type="CORE"), r"partitions\[0\].service_type: there is no service type 'CORE'"),
        (one_partition(number=-1), r"partitions\[0\].number is -1; give a whole number"),
        (one_partition(number=1.5), r"partitions\[0\].number is 1.5; give a whole number"),
        (one_partition(tenant="me"), r"partitions\[0\].tenant is 'me'; give a UUID"),
        (one_partition(service_typ="EDQS"), "did you mean 'service_type'?"),
        ({"services": [], "partitions": [], "current": []}, r"current is \[\]; give an object"),
        ({"services": [], "partitions": [], "current": {"p": 1}}, r"current\['p'\] is 1; give a text"),
        ({"services": [], "partitions": [], "assignor": "range"}, "no assignor 'range'; choose one of sticky, thingsb"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(planned: Any, given: Any, error: str) -> None:
    with pytest.raises(CommandError, match=error):
        planned(given)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(["--assignor", "range"], "no assignor 'range'"), (["--assignor", "thingsboard", "--hash", "md5"], "'md5'")],
)
def test_options_there_are_not(planned: Any, arguments: list[str], error: str) -> None:
    with pytest.raises(CommandError, match=error):
        planned({"services": ["a"], "partitions": ["p"]}, *arguments)


def manage(tmp_path: Path, given: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", "plan_assignment"],
        cwd=ROOT,
        # Nothing listens there: the command needs no database.
        env={
            **os.environ,
            "SWITCHYARD_DATA_DIR": str(tmp_path),
            "SWITCHYARD_DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
        },
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_on_the_command_line(tmp_path: Path) -> None:
    done = manage(tmp_path, json.dumps({"services": ["a"], "partitions": ["p"], "current": {"p": "b"}}))
    assert done.returncode == 0
    assert json.loads(done.stdout)["moves"] == [{"partition": "p", "from": "b", "to": "a"}]
    assert done.stderr == ""


def test_what_is_wrong_ends_with_a_line_and_a_code(tmp_path: Path) -> None:
    done = manage(tmp_path, '{"services": ["a"], "partitons": []}')
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.strip() == "CommandError: the input has an unknown key 'partitons'; did you mean 'partitions'?"
