"""`treelm serve`."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions
from treelm.cli.process import Terminated
from treelm.cli.ranges import at_least, between
from treelm.corpus.brackets import MAX_THREADS
from treelm.extras import import_extra


def serve(
    *,
    model: Annotated[
        list[str] | None,
        Parameter(
            name=["--model", "-m"],
            metavar="MODEL",
            consume_multiple=False,
            help="Model folder, or the name of a ready model, that is loaded before anything is "
            "answered; once for each of several models.",
            show_default="the usual ready models that are installed",
        ),
    ] = None,
    offer: Annotated[list[str] | None, Parameter(metavar="MODEL", consume_multiple=False)] = None,
    no_ready: bool = False,
    host: Annotated[str, Parameter(metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, between(0, 65535)] = 8700,
    allowed_host: Annotated[
        list[str] | None,
        Parameter(metavar="NAME", consume_multiple=False, show_default="this machine's own"),
    ] = None,
    threads: Annotated[
        int | None, between(1, MAX_THREADS), Parameter(show_default="the cores available")
    ] = None,
    queue: Annotated[int, at_least(0)] = 64,
    seconds: Annotated[float, at_least(1)] = 10.0,
    max_words: Annotated[int, at_least(1)] = 1000,
    max_bytes: Annotated[int, at_least(1024)] = 256 << 10,
    log: bool = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Serve the playground: a page and a JSON API for trying models in a browser.

    The page shows the surprisal of words, trees with the probabilities of their brackets, the
    incremental parser at work, two sentences side by side, verdicts and samples. Nothing is loaded
    from elsewhere. Only the models named here, and the ready models that are installed, can be
    asked. It needs the extra web: `pip install "treelm[web]"`. Ctrl-C stops it.

    Args:
        offer: Model folder, or the name of a ready model, that is loaded when somebody asks for it;
            once for each.
        no_ready: Offer no other ready models; without this, those that are installed are loaded
            when somebody asks for them.
        host: Address to listen at; 0.0.0.0 lets other machines ask too.
        port: Port to listen at; 0 takes a free one.
        allowed_host: Name by which the server may be called, such as that of a proxy before it;
            once for each.
        threads: Requests that are worked on at once.
        queue: Requests that may wait for that; further ones are answered 503, with Retry-After.
        seconds: Longest time that a request may wait and work.
        max_words: Most words of a text that is answered at once.
        max_bytes: Largest body of a request.
        log: Write a line for each request to standard error.
    """
    import_extra("fastapi", "Serving the playground")
    import_extra("uvicorn", "Serving the playground")
    from treelm.parallel.executor import available_cores
    from treelm.web.limits import ServerLimits
    from treelm.web.offered_models import OfferedModels
    from treelm.web.server import PlaygroundServer

    limits = ServerLimits(
        threads=threads or available_cores(),
        queue=queue,
        seconds=seconds,
        words=max_words,
        body_bytes=max_bytes,
    )
    models = OfferedModels.opened(model or [], offer or [], ready=not no_ready)
    server = PlaygroundServer(
        models, limits, host=host, port=port, hosts=tuple(allowed_host or ()), log=log
    )
    served = models.names_at_start or models.names
    common.note(f"serving {', '.join(served)} at {server.address} (Ctrl-C stops it)")
    # A signal is how servers are stopped.
    with contextlib.suppress(KeyboardInterrupt, Terminated):
        server.run()
    if server.is_working:
        # Kernels do not survive the end of the interpreter, and nobody waits for them.
        sys.stderr.flush()
        os._exit(0)
