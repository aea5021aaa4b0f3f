"""Whole messages between this process and one that it started, over a pair of sockets.

Unlike a pipe, a socket cannot be opened again through ``/proc/PID/fd``, so only the two processes have it.
"""

from __future__ import annotations

import select
import socket
import time

LENGTH = 8
"""Bytes that tell the length of a message, before it."""


class Channel:
    """One end of a pair of sockets. Whoever has the other may be stopped, or send anything: hence the limits."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def fileno(self) -> int:
        """The file descriptor."""
        return self.socket.fileno()

    def send(self, *messages: bytes, seconds: float | None = None) -> None:
        """Send messages, all within `seconds`.

        Raises TimeoutError: the other end did not take them in that time; ConnectionError: it is closed.
        """
        self.socket.settimeout(seconds)
        self.socket.sendall(b"".join(len(one).to_bytes(LENGTH, "big") + one for one in messages))

    def receive(self, most: int, seconds: float | None = None) -> bytes:
        """The next message, and nothing beyond it: what follows stays with the system until it is asked for.

        Raises:
            TimeoutError: the whole of it was not there after `seconds`.
            ConnectionError: the other end is closed.
            ValueError: it announces more than `most` bytes.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        length = int.from_bytes(self._exactly(LENGTH, deadline), "big")
        if length > most:
            raise ValueError(f"a message of {length} bytes, where {most} are the most")
        return self._exactly(length, deadline)

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        """The next `count` bytes."""
        data = bytearray()
        while len(data) < count:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self.socket.settimeout(left)
            chunk = self.socket.recv(min(count - len(data), 1 << 20))
            if not chunk:
                raise ConnectionError("the other end is closed")
            data += chunk
        return bytes(data)

    def quiet(self) -> bool:
        """Whether the other end is open and has sent nothing that was not received."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)

    def shut(self) -> None:
        """End it for both sides; also a `receive` that another thread waits in."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other end was the quicker

    def close(self) -> None:
        """Close this end."""
        self.socket.close()


def pair() -> tuple[Channel, Channel]:
    """Two ends."""
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)
