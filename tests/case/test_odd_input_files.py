"""What `from` names and is no regular file is refused with its place, and never waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gradcheck.case.execute import execute
from gradcheck.case.input_arrays import NoInputError, load_array
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import read_bytes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="such files are POSIX's")

SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: one
    title: t
    source: {document: d}
    layer: {op: tanh}
    inputs: {x: {from: NAME}}
"""


def pipe(folder, name):
    os.mkfifo(folder / name)


def link_to_pipe(folder, name):
    os.mkfifo(folder / "other")
    (folder / name).symlink_to("other")


def folder_there(folder, name):
    (folder / name).mkdir()


def socket_there(folder, name):
    with socket.socket(socket.AF_UNIX) as one:
        before = os.getcwd()
        os.chdir(folder)  # the path of a socket may have about 100 bytes
        try:
            one.bind(name)
        finally:
            os.chdir(before)


@pytest.mark.parametrize(("name", "key"), [("x.npy", ""), ("x.npz", ", key: a")])
@pytest.mark.parametrize(
    ("make", "what"),
    [(pipe, "a pipe"), (link_to_pipe, "a pipe"), (folder_there, "a folder"), (socket_there, "a socket")],
)
def test_a_file_of_another_kind_is_refused_at_once(tmp_path, make, what, name, key):
    make(tmp_path, name)
    (case,) = plan([read_bytes(SPEC.replace("NAME", name + key).encode(), str(tmp_path / "t.grad.yaml"))], ["numpy"])
    writer = os.fork() if what == "a pipe" else 0
    if what == "a pipe" and writer == 0:  # whoever opens the pipe on the parent commit gets an end, after a while
        try:
            with open(tmp_path / name, "wb"):
                pass
        finally:
            os._exit(0)
    try:
        result = execute(case)
    finally:
        if writer:
            os.kill(writer, 9)
            os.waitpid(writer, 0)
    assert result.status is Status.ERROR
    reads = "'from' reads files written by np.save or np.savez (line 7 of the spec)"
    assert result.message == f"{name} is not a regular file: {reads}"


def test_a_device_is_none_either():
    with pytest.raises(NoInputError, match=r"^null is not a regular file: 'from' reads"):
        load_array(Path("/dev"), "null", None)
