"""Production mode, in a process of its own as settings are read once."""

import os
import subprocess
import sys
from pathlib import Path

from tests.system import ROOT

HEADERS = """
import django
django.setup()
from django.test import Client
print(Client().get("/login/", secure=True, headers={"host": "switchyard.example.org"})["Strict-Transport-Security"])
"""


def run(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "SWITCHYARD_DATA_DIR": str(data_dir),
        "SWITCHYARD_MODE": "production",
        "SWITCHYARD_ALLOWED_HOSTS": "switchyard.example.org",
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
    )


def test_browsers_are_told_about_our_own_host_alone(tmp_path: Path) -> None:
    assert run(tmp_path, "-c", HEADERS).stdout == "max-age=31536000\n"


def test_django_has_no_complaint(tmp_path: Path) -> None:
    result = run(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert result.returncode == 0, result.stderr
