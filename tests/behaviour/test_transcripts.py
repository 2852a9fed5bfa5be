"""The command line prints what `transcripts/` holds. `python -m tests.behaviour.transcripts` writes it again."""

import shlex

import pytest

from tests.behaviour.transcripts import FOLDER, TOPICS, path_of, transcript


@pytest.mark.parametrize("topic", TOPICS)
def test_the_command_line_prints_what_it_did(topic):
    assert transcript(topic) == path_of(topic).read_text(encoding="utf-8")


def test_every_file_has_a_topic():
    assert set(FOLDER.iterdir()) == set(map(path_of, TOPICS))


def test_every_command_is_in_a_transcript():
    """Those of the help, and each with an example that is not its help, but for those that take minutes."""
    helped = {command.removesuffix(" --help") for command in TOPICS["help"]}
    used = {shlex.split(command)[0] for topic, commands in TOPICS.items() if topic != "help" for command in commands}
    names = {name.split()[0] for name in helped if not name.startswith("--")}
    assert names - used == {"explore", "paper", "demo"}
