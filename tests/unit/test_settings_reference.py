"""The settings reference says what the code does."""

from io import StringIO
from pathlib import Path

from django.core.management import call_command

from queueapi.config import Config
from queuecore.config import describe

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def printed() -> str:
    output = StringIO()
    call_command("settings_reference", stdout=output)
    return output.getvalue()


def test_the_reference_is_what_the_command_prints() -> None:
    assert REFERENCE.read_text() == printed(), "docs/reference/settings.md is out of date; run `make reference`"


def test_every_setting_has_one_row_with_four_cells_and_a_sentence() -> None:
    rows = [line for line in printed().splitlines() if line.startswith("| `SWITCHYARD_")]

    assert len(rows) == len(list(describe(Config)))
    for row in rows:
        cells = row.replace("\\|", "").strip("|").split("|")
        assert len(cells) == 4, row
        assert cells[3].strip().endswith("."), row


def test_secrets_and_second_names_are_marked() -> None:
    rows = {line.split("`")[1]: line for line in printed().splitlines() if line.startswith("| `SWITCHYARD_")}

    assert "*secret*" in rows["SWITCHYARD_DATABASE_URL"]
    assert "*secret*" not in rows["SWITCHYARD_WEB_PORT"]
    assert "`SWITCHYARD_SPARK_MASTER` or `SPARK_MASTER`" in rows["SWITCHYARD_SPARK_MASTER"]
