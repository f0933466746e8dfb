"""What one request, and all of them together, may cost the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What a server takes, and how long it works.

    Args:
        body_bytes: Largest body of a request.
        words: Most words of a text that is answered at once.
        stream_words: Most words of a text that is answered sentence by sentence.
        sentence_words: Most words of a sentence whose words are scored.
        tree_words: Most words of a sentence that is parsed or judged.
        trees: Most trees, or states of a parser, that are shown of a sentence.
        samples: Most sentences that are sampled at once.
        seconds: A request that has waited and worked for longer is given up.
        send_seconds: A client that sends nothing for so long, or needs longer than that for its
            headers, is cut off; so is one that takes no bytes of its answer.
        threads: Requests that are worked on at once.
        queue: Requests that may wait for a thread; further ones are turned away with 503.
        connections: Open connections; further ones are turned away with 503.
    """

    body_bytes: int = 256 << 10
    words: int = 1000
    stream_words: int = 20_000
    sentence_words: int = 400
    tree_words: int = 100
    trees: int = 20
    samples: int = 50
    seconds: float = 10.0
    send_seconds: float = 10.0
    threads: int = 2
    queue: int = 64
    connections: int = 1000
