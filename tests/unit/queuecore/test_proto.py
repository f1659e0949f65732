"""The generated Protocol Buffers code is that of the sources."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = Path("queuecore/proto")


def generated(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / FOLDER).glob("*_pb2.py*")}


def test_generated_code_matches_its_sources(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts/generate-proto", tmp_path], check=True)
    assert len(generated(tmp_path)) == 2 * len(list((ROOT / FOLDER).glob("*.proto")))
    assert generated(ROOT) == generated(tmp_path), "run scripts/generate-proto and commit what it makes"
