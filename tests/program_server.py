"""Runs the program `treelm` many times at the price of one start: a loaded process that forks.

Starting Python and loading the packages takes most of the time of a small command. A server loads
them once; every call is a process forked from it, with its own streams, arguments, working folder,
limits and exit status, in which ``python -m treelm`` begins as it always does. What happens before
that, such as hash seeds, encodings and what is not loaded, needs a process from the start.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import pkgutil
import resource
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

#: Process id or wait status.
_NUMBER = struct.Struct("=q")
_BLOCK = 1 << 16
#: Modules that need what users do not have, or are the program itself.
_NOT_LOADED = ("treelm.__main__", "treelm.testing")


class _Request(NamedTuple):
    """One call of the program."""

    arguments: Sequence[str | bytes]
    folder: str
    limits: Mapping[int, int]
    closed: Sequence[int]


class ProgramServer:
    """A process that has loaded treelm, and what is said to it.

    Args:
        variables: Its environment, and that of all calls.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=variables,
                # The streams of calls are pipes too, put in the place of these.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        self._channel = ours
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self._channel.close()
        self._process.communicate()

    def call(
        self,
        arguments: Sequence[str | bytes],
        stdin: bytes,
        *,
        folder: str,
        timeout: float,
        limits: Mapping[int, int] | None = None,
        closed: Sequence[int] = (),
    ) -> tuple[int, bytes, bytes]:
        """Run the program to its end.

        Args:
            arguments: Command and options.
            stdin: Bytes on standard input.
            folder: Working folder.
            timeout: Seconds after which it is killed.
            limits: Resource limits by their number in the module `resource`.
            closed: Streams that are closed, by number.

        Returns:
            Exit code, or the negative number of a signal; standard output; standard error.

        Raises:
            TimeoutError: if it had to be killed.
        """
        request = _Request(arguments, folder, limits or {}, closed)
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile())
            pickle.dump(tuple(request), file)
            file.flush()
            pipes = [os.pipe() for _ in range(3)]
            theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
            socket.send_fds(self._channel, [b"."], [file.fileno(), *theirs])
            for descriptor in theirs:
                os.close(descriptor)
        process = self._number()
        ours = (pipes[0][1], pipes[1][0], pipes[2][0])
        try:
            out, err = _communicate(*ours, stdin, timeout)
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._number()
            raise
        return os.waitstatus_to_exitcode(self._number()), out, err

    def _number(self) -> int:
        data = b""
        while len(data) < _NUMBER.size:
            more = self._channel.recv(_NUMBER.size - len(data))
            if not more:
                _, err = self._process.communicate()
                raise RuntimeError(f"the server ended: {err.decode(errors='replace')}")
            data += more
        return int(_NUMBER.unpack(data)[0])


def _communicate(
    stdin: int, stdout: int, stderr: int, content: bytes, timeout: float
) -> tuple[bytes, bytes]:
    """Write and read pipes until they are closed at the other end; close them.

    Raises:
        TimeoutError: if that takes longer than `timeout` seconds.
    """
    gone = time.monotonic() + timeout
    left = memoryview(content)
    found: dict[int, list[bytes]] = {stdout: [], stderr: []}
    opened = {stdin, stdout, stderr}
    try:
        with selectors.DefaultSelector() as selector:
            for descriptor in found:
                selector.register(descriptor, selectors.EVENT_READ)
            if content:
                os.set_blocking(stdin, False)
                selector.register(stdin, selectors.EVENT_WRITE)
            else:
                os.close(stdin)
                opened.discard(stdin)
            while opened:
                events = selector.select(gone - time.monotonic())
                if not events and time.monotonic() > gone:
                    raise TimeoutError
                for key, _ in events:
                    if key.fd == stdin:
                        with contextlib.suppress(BlockingIOError):
                            try:
                                left = left[os.write(stdin, left[:_BLOCK]) :]
                            except BrokenPipeError:
                                left = left[:0]
                        ended = not left
                    else:
                        data = os.read(key.fd, _BLOCK)
                        found[key.fd].append(data)
                        ended = not data
                    if ended:
                        selector.unregister(key.fd)
                        os.close(key.fd)
                        opened.discard(key.fd)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return b"".join(found[stdout]), b"".join(found[stderr])


# -- the other side ------------------------------------------------------------------------------


def load_everything() -> None:
    """Import treelm, all of it."""
    import treelm

    for found in pkgutil.walk_packages(treelm.__path__, "treelm.", onerror=lambda _: None):
        if not found.name.startswith(_NOT_LOADED):
            importlib.import_module(found.name)


def _requests(channel: socket.socket) -> Iterator[tuple[_Request, Sequence[int]]]:
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, 1, 4)
        if not data:
            return
        with os.fdopen(descriptors[0], "rb") as file:
            file.seek(0)
            yield _Request(*pickle.load(file)), descriptors[1:]


def _serve(channel: socket.socket) -> _Request | None:
    """Fork for every request; return it in the new process, and None in the server at the end."""
    for request, streams in _requests(channel):
        process = os.fork()
        if not process:
            channel.close()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return request
        for descriptor in streams:
            os.close(descriptor)
        channel.sendall(_NUMBER.pack(process))
        channel.sendall(_NUMBER.pack(os.waitpid(process, 0)[1]))
    return None


def _main() -> None:
    # Ctrl-C is for the tests; they end the server when they end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del sys.path[0]  # the folder of this file
    channel = socket.socket(fileno=int(sys.argv[1]))
    load_everything()
    gc.collect()
    gc.freeze()
    request = _serve(channel)
    if request is None:
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request.folder)
    for kind, value in request.limits.items():
        resource.setrlimit(kind, (value, value))
    for number in request.closed:
        os.close(number)
        # What Python makes of a stream that is closed when it starts.
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    sys.path.insert(0, request.folder)
    sys.argv[1:] = [os.fsdecode(argument) for argument in request.arguments]
    try:
        runpy.run_module("treelm", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        _exit_at_once(end.code)


def _exit_at_once(status: int) -> None:
    """End as the interpreter does, but leave all the modules to the system."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # what cannot be written is told by a traceback, as always
    os._exit(status)


if __name__ == "__main__":
    _main()
