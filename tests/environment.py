"""Loaded before anything else (see addopts): tests never see the developer's data or variables."""

import atexit
import os
import shutil
import tempfile

for name in [name for name in os.environ if name.startswith("SWITCHYARD_")]:
    if name != "SWITCHYARD_CACHE_DIR":
        del os.environ[name]

_data = tempfile.mkdtemp(prefix="switchyard-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["SWITCHYARD_DATA_DIR"] = _data
