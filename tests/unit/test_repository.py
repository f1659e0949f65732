"""The repository as a whole: locks that install anywhere and match what is asked for, documents whose links work."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]

# Put together from parts, as this file is looked through as well.
INDEX_HOSTS = [
    *("py" + "pi.org", "python" + "hosted.org", "py" + "pi.python.org", "conda." + "anaconda.org"),
    *("registry." + "npmjs.org", "registry." + "yarnpkg.com", "un" + "pkg.com", "js" + "delivr.net"),
    *("repo1." + "maven.org", "repo." + "maven.apache.org", "central." + "sonatype.com"),
]
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
ADDRESS = re.compile(r"(?i)\b[a-z][a-z+.-]*://|\s@\s|--(extra-)?index-url|--find-links|--trusted-host")
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?==(?P<version>[^ ;\\]+)")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)>?[^)]*\)")
DEFINITION = re.compile(r"(?m)^\[[^\]]+\]:\s*(?P<target>\S+)")
CODE = re.compile(r"(?ms)^(```|~~~).*?^\1|`[^`\n]*`")


@cache
def files() -> tuple[Path, ...]:
    """What is tracked, or will be: everything git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


LOCKS = sorted(path for path in files() if path.suffix == ".lock")
DOCUMENTS = sorted(path for path in files() if path.suffix == ".md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKED = {"requirements.lock": PROJECT["dependencies"]} | {
    f"requirements-{extra}.lock": PROJECT["dependencies"] + wanted
    for extra, wanted in PROJECT["optional-dependencies"].items()
}
# Peers of benchmarks, each in an environment of its own.
PEERS = {relative(path.with_suffix(".lock")): path.read_text().split() for path in files() if path.suffix == ".in"}
# What installs the others; at the version the development tools have.
SETUP_LOCK = "requirements-setup.lock"


def requirements(lock: Path) -> list[str]:
    """Each requirement of a lock with its hashes on one line, without comments."""
    lines = [line for line in lock.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return "\n".join(lines).replace("\\\n", " ").splitlines()


@cache
def pins(lock: Path) -> dict[str, Version]:
    found = (PIN.match(requirement) for requirement in requirements(lock))
    return {canonicalize_name(pin["name"]): Version(pin["version"]) for pin in found if pin}


def test_no_file_names_a_package_index() -> None:
    """Where packages come from is the business of whoever installs, and of pip's or uv's own configuration."""
    hosts = re.compile("|".join(re.escape(host) for host in INDEX_HOSTS).encode(), re.IGNORECASE)
    assert [relative(path) for path in files() if hosts.search(path.read_bytes())] == []


def test_every_set_of_dependencies_has_its_lock() -> None:
    assert {relative(path) for path in LOCKS} == LOCKED.keys() | PEERS.keys() | {SETUP_LOCK}, "run `make lock`"


def test_the_installer_is_the_one_of_the_development_tools() -> None:
    assert pins(ROOT / SETUP_LOCK) == {"uv": pins(ROOT / "requirements-dev.lock")["uv"]}


@pytest.mark.parametrize("lock", LOCKS, ids=relative)
def test_a_lock_holds_no_address(lock: Path) -> None:
    assert [line for line in lock.read_text().splitlines() if ADDRESS.search(line)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=relative)
def test_every_requirement_is_pinned_with_hashes(lock: Path) -> None:
    listed = requirements(lock)

    assert listed
    assert [line for line in listed if not (PIN.match(line) and HASH.search(line))] == []


@pytest.mark.parametrize("name", LOCKED | PEERS)
def test_a_lock_has_every_direct_dependency_at_an_allowed_version(name: str) -> None:
    locked = pins(ROOT / name)
    for text in (LOCKED | PEERS)[name]:
        wanted = Requirement(text)
        version = locked.get(canonicalize_name(wanted.name))
        assert version is not None, f"{name} lacks {wanted.name}; run `make lock`"
        assert wanted.specifier.contains(version, prereleases=True), f"{name} has {wanted.name} {version}, not {text}"


@pytest.mark.parametrize("name", sorted(LOCKED.keys() - {"requirements.lock"}))
def test_an_extra_installs_what_is_deployed(name: str) -> None:
    """Tests and benchmarks run on the very versions an installation runs on."""
    deployed = pins(ROOT / "requirements.lock")
    assert {package: pins(ROOT / name).get(package) for package in deployed} == deployed


def links(document: Path) -> Iterator[str]:
    text = CODE.sub("", document.read_text())
    for pattern in (LINK, DEFINITION):
        for found in pattern.finditer(text):
            yield unquote(found["target"])


def is_broken(document: Path, target: str) -> bool:
    path = target.partition("#")[0]
    if not path or re.match(r"[a-z][a-z+.-]*:", path):
        return False
    base = ROOT if path.startswith("/") else document.parent
    return not (base / path.lstrip("/")).exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_relative_links_lead_somewhere(document: Path) -> None:
    assert [target for target in links(document) if is_broken(document, target)] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "[here](page.md#top) [away](https://example.org/x) [gone](lost.md) ![image](no.png 'title')\n"
        "`[code](not-a-link.md)`\n```\n[code](neither.md)\n```\n[definition]: missing.md\n"
    )

    broken = [target for target in links(document) if is_broken(document, target)]

    assert broken == ["lost.md", "no.png", "missing.md"]
