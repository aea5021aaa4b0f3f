"""Messages between two processes: whole, in order, within their limits, and no further than asked for."""

from __future__ import annotations

import os
import socket
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.run.channel import LENGTH, Channel, pair


@pytest.fixture
def ends():
    ours, theirs = pair()
    yield ours, theirs
    ours.close()
    theirs.close()


@given(st.lists(st.binary(max_size=100), max_size=10))
def test_messages_arrive_whole_and_in_order(messages):
    ours, theirs = pair()
    theirs.send(*messages)
    assert [ours.receive(100, 5) for _ in messages] == messages
    assert ours.quiet()
    ours.close()
    theirs.close()


def test_a_message_larger_than_what_the_system_holds_arrives(ends):
    ours, theirs = ends
    large = os.urandom(1 << 22)
    sender = threading.Thread(target=theirs.send, args=[large])
    sender.start()
    assert ours.receive(1 << 22, 60) == large
    sender.join()


def test_what_follows_a_message_is_not_taken_into_this_process(ends):
    ours, theirs = ends
    theirs.send(b"request", b"word")
    assert ours.receive(100, 5) == b"request"
    assert not ours.quiet()
    assert ours.socket.recv(100, socket.MSG_PEEK) == (4).to_bytes(LENGTH, "big") + b"word"


@pytest.mark.parametrize("part", [b"", b"\0", (9).to_bytes(LENGTH, "big"), (9).to_bytes(LENGTH, "big") + b"half"])
def test_a_message_that_does_not_come_or_breaks_off_is_not_waited_for(ends, part):
    ours, theirs = ends
    theirs.socket.sendall(part)
    with pytest.raises(TimeoutError):
        ours.receive(100, 0.05)
    theirs.close()
    with pytest.raises(ConnectionError):
        ours.receive(100, 5)


def test_what_nobody_takes_is_not_waited_for(ends):
    with pytest.raises(TimeoutError):
        ends[0].send(bytes(1 << 24), seconds=0.05)


def test_a_message_that_is_too_long_is_refused_before_memory_is_taken_for_it(ends):
    ends[1].socket.sendall(b"\xff" * LENGTH)
    with pytest.raises(ValueError, match="100 are the most"):
        ends[0].receive(100, 5)


def test_another_thread_that_waits_is_woken_by_the_end(ends):
    ended = []

    def wait():
        with pytest.raises(ConnectionError):
            ends[0].receive(100, 60)
        ended.append(True)

    waiter = threading.Thread(target=wait)
    waiter.start()
    ends[0].shut()
    waiter.join(30)
    assert ended == [True]
    ends[0].shut()  # once more does no harm


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_no_process_can_open_an_end_again(ends):
    for end in ends:
        with pytest.raises(OSError, match="No such device"):
            os.open(f"/proc/self/fd/{end.fileno()}", os.O_RDWR)


def test_an_end_whose_other_end_is_closed_is_not_quiet():
    ours, theirs = pair()
    assert ours.quiet()
    theirs.close()
    assert not ours.quiet()
    with pytest.raises(ConnectionError):
        Channel(ours.socket).send(b"x", seconds=5)
    ours.close()
