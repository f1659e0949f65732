"""How long an installation waits for a PostgreSQL that does not answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import json; from console import settings; print(json.dumps(settings.DATABASES['default']['OPTIONS']))"


def options(folder: Path, url: str) -> dict[str, object]:
    """Those of the connection, in an installation of its own."""
    environment = {**os.environ, "SWITCHYARD_DATA_DIR": str(folder), "SWITCHYARD_DATABASE_URL": url}
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, object] = json.loads(told.stdout)
    return found


def test_a_connection_whose_network_is_gone_is_given_up_within_seconds(tmp_path: Path) -> None:
    found = options(tmp_path, "postgresql://user@db/switchyard")
    assert found["connect_timeout"] == 3
    assert found["tcp_user_timeout"] == 5_000
    assert found["keepalives_idle"] == 3


def test_what_the_address_says_goes_before(tmp_path: Path) -> None:
    found = options(tmp_path, "postgresql://user@db/switchyard?connect_timeout=30&sslmode=require")
    assert found["connect_timeout"] in (30, "30")
    assert found["sslmode"] == "require"
    assert found["tcp_user_timeout"] == 5_000
