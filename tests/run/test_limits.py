"""Limits of memory: how they are written, and that they hold."""

from __future__ import annotations

import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.result import Status
from gradcheck.run.limits import parse_size, shown_size

pytestmark = pytest.mark.usefixtures("real_servers")  # whose memory is that of a server alone

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the limit is held on Linux")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512M", 512 << 20),
        ("2G", 2 << 30),
        ("1.5GB", 3 << 29),
        ("2 GiB", 2 << 30),
        ("4194304", 4 << 20),
        ("1t", 1 << 40),
    ],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1G", "1X", "1e9", "512", "1023K", "inf", "9" * 40, "2G2"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="write one of at least 1M, such as 512M or 2G"):
        parse_size(text)


@given(st.integers(1 << 10, 1 << 20).map(lambda k: k << 10))
def test_a_size_that_is_shown_can_be_read_again(size):
    assert parse_size(shown_size(size)) == pytest.approx(size, rel=0.05)


@linux_only
@pytest.mark.parametrize(
    "script",
    ["kept = bytearray(1 << 28)", "kept = []\nwhile True: kept.append(bytes(1 << 16))", "x = 'x' * (1 << 28)"],
)
def test_a_case_that_needs_more_than_it_may_is_an_error_that_says_so(runner, case, script):
    result = runner.run(case(script).model_copy(update={"memory": 100 << 20}))
    assert result.status is Status.ERROR
    assert result.message.startswith("needs more than 100M of memory")
    assert result.internal_error == ""


@linux_only
def test_a_case_that_stays_at_its_limit_is_not_stopped(runner, case):
    script = """
        import mmap, time
        import numpy as np
        np.ones((900, 900)) @ np.ones((900, 900))  # writes to memory that was reserved before
        with open(np._core._multiarray_umath.__file__, "rb") as file:
            read = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            said = sum(read[::4096])  # and what is read of files is no memory that it takes
        kept = []
        try:
            while True:
                kept.append(bytearray(1 << 16))
        except MemoryError:
            time.sleep(0.5)
            said = len(kept) >= 1500
    """
    result = runner.run(case(textwrap.dedent(script)).model_copy(update={"memory": 100 << 20}))
    assert (result.status, result.message) == (Status.PASS, "True")


@linux_only
def test_the_limit_is_for_each_case_and_not_for_all_in_a_process(runner, case):
    for k in range(5):
        one = case(f"kept = [0.0] * {(60 << 20) // 8}\nsaid = {k}", f"c{k}").model_copy(update={"memory": 100 << 20})
        assert runner.run(one).message == str(k)


@linux_only
def test_memory_that_no_limit_of_the_system_counts_is_seen(runner, case):
    script = "import mmap, time\nm = mmap.mmap(-1, 1 << 28)\nm[:] = b'x' * (1 << 28)\ntime.sleep(60)"
    result = runner.run(case(script).model_copy(update={"memory": 150 << 20}))
    assert result.status in (Status.CRASH, Status.ERROR)
    assert "more than 150M of memory" in result.message
