"""The plain programs of broken sentences print what they say that they print."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from installed import variables
from warm import python

from gradcheck.backends.base import version_of
from gradcheck.conformance.catalogue import iterate_rules, load_catalogue
from gradcheck.conformance.programs import PlainProgram, read_programs

PROGRAMS = read_programs()
ENGINE = "import pylayer, sys; pylayer.install_paddle(); exec(open(sys.argv[1]).read())"
"""Runs a program where ``import paddle`` is the engine, which does what documents say."""


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that a program printed, or the type of the exception that ended it."""
    if done.returncode == 0:
        return done.stdout.strip().splitlines()[-1]
    errors = re.findall(r"(?m)^(\w+Error):", done.stderr)
    return errors[-1] if errors else done.stderr


def test_each_is_about_a_rule_of_a_page() -> None:
    assert PROGRAMS.keys() <= {rule.id for rule, _ in iterate_rules(load_catalogue()) if rule.quote}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_where_documents_are_followed_it_prints_what_they_ask_for(program: PlainProgram) -> None:
    assert printed(python("-c", ENGINE, program.path)) == program.expected


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_on_the_installed_release_it_prints_what_is_recorded(program: PlainProgram) -> None:
    release = version_of("paddle")
    if release not in program.prints:
        pytest.skip(f"nothing is recorded of paddle {release or 'here: it is not installed'}")
    command = [sys.executable, str(program.path)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables(), check=False)
    assert printed(done) == program.prints[release]
