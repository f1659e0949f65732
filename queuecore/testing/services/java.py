"""The Java that runs Kafka."""

import os
import re
import shutil
import subprocess

AT_LEAST = 17


def find_java() -> str | None:
    """Return the java of `JAVA_HOME`, else the one in PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")  # noqa: PTH118 - `which` takes text


def java_version(java: str) -> int:
    """Return the major version: 17 for "17.0.15", 8 for "1.8.0_392", 0 for what answers otherwise."""
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    return int(found.group(1)) if found else 0


def missing_java() -> str | None:
    """Say how to get a Java that is new enough; None when there is one."""
    remedy = "run scripts/require java, or install the package openjdk-17-jre-headless (apt) or another JRE"
    java = find_java()
    if java is None:
        return f"Java is not installed (Kafka runs on it): {remedy}"
    version = java_version(java)
    if version < AT_LEAST:
        return f"Java {version} at {java} is too old (Kafka needs {AT_LEAST} or newer): {remedy}"
    return None
