"""The script that installs a browser, Java and PostgreSQL never fails, and says what is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "install-system-packages"
NEEDED = ("bash", "env", "timeout", "touch")


@pytest.fixture
def machine(tmp_path):
    """A machine on which only what is added is installed."""
    for name in NEEDED:
        (tmp_path / name).symlink_to(shutil.which(name))
    add(tmp_path, "id", "echo 0")
    return tmp_path


def add(folder, name, body="exit 0"):
    (folder / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
    (folder / name).chmod(0o755)


def run(folder):
    words = [shutil.which("bash"), str(SCRIPT)]
    environment = {"PATH": str(folder), "POSTGRESQL_FOLDER": str(folder / "postgresql")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    return done.stdout, done.stderr


@pytest.mark.parametrize("initdb", ["initdb", "postgresql/15/bin/initdb"])
def test_what_is_there_is_left_alone(machine, initdb):
    """PostgreSQL may be in PATH or where Debian puts it."""
    (machine / initdb).parent.mkdir(parents=True, exist_ok=True)
    for name in ("chromium", "chromedriver", "java", initdb):
        add(machine, name)
    add(machine, "apt-get", f"touch {machine}/called")
    output, complaints = run(machine)
    assert "there already" in output
    assert complaints == ""
    assert not (machine / "called").exists()


def test_only_what_is_missing_is_installed(machine):
    add(machine, "java")
    add(machine, "initdb")
    add(machine, "apt-get", f'echo "$@" >> {machine}/words')
    output, _ = run(machine)
    assert "installed chromium chromium-driver" in output
    update, install = (machine / "words").read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith("install --yes --no-install-recommends chromium chromium-driver")


def test_what_cannot_be_installed_is_a_warning(machine):
    assert os.access(SCRIPT, os.X_OK)
    assert "there is no apt-get here: install chromium" in run(machine)[1]
    add(machine, "apt-get", "exit 100")
    output, complaints = run(machine)
    assert "installed" not in output
    every = "chromium chromium-driver default-jre-headless postgresql"
    assert f"warning: apt-get failed: install {every} by hand" in complaints
    add(machine, "apt-get", f"touch {machine}/called")
    add(machine, "id", "echo 1000")
    assert "this needs root" in run(machine)[1]
    add(machine, "sudo", 'shift; exec "$@"')
    assert "installed chromium" in run(machine)[0]
