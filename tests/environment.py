"""Loaded before anything else (see addopts): tests never see the developer's data or variables.

`SWITCHYARD_TEST_DATABASE=postgresql` runs all tests on a PostgreSQL that is started for them, instead of on SQLite.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

DATABASE: Final = os.environ.get("SWITCHYARD_TEST_DATABASE") or "sqlite"
DATABASE_URL: Final = "SWITCHYARD_DATABASE_URL"

for name in [name for name in os.environ if name.startswith("SWITCHYARD_")]:
    if name != "SWITCHYARD_CACHE_DIR":
        del os.environ[name]

_data = tempfile.mkdtemp(prefix="switchyard-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["SWITCHYARD_DATA_DIR"] = _data
# What is not about events has none to be surprised by.
os.environ["SWITCHYARD_METRICS_INTERVAL_S"] = "0"

if DATABASE not in ("sqlite", "postgresql"):
    raise SystemExit(f"SWITCHYARD_TEST_DATABASE is {DATABASE!r}; use sqlite or postgresql")
if DATABASE == "postgresql":
    from queuecore.testing.services import PostgresService

    _service = PostgresService(Path(_data, "postgres"), ephemeral=True)
    _service.start()
    atexit.register(_service.erase)
    # The settings read it; `tests.databases` removes it then: processes that tests start have databases of their own.
    os.environ[DATABASE_URL] = _service.url
