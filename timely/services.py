"""What a layer on top may use of `timely` around its dataflows: what serves, watches and shows a running program.

Operators need none of it; what they need is in `timely.lowlevel`. A session, for example, answers requests over HTTP
with `HttpServer` and `Access`, passes tables to programs of this machine through an `AnsweringSocket` in the
`run_directory`, shows its progress on a `Display`, and has a live page by `serve_live`.
"""

from timely.communication.asking import AnsweringSocket, AskingSocket
from timely.communication.notes import begin_to_end, declare_fate, has_prefixes
from timely.live.display import Display, time_left
from timely.live.handle import Live
from timely.live.output import empty_standard_output, has_no_reader
from timely.live.serving import WRITE_SECONDS, Access, HttpServer, headers_of, listen
from timely.run.directory import run_directory
from timely.run.environment import STATE_VARIABLE
from timely.run.live import serve_live

__all__ = [
    "STATE_VARIABLE",
    "WRITE_SECONDS",
    "Access",
    "AnsweringSocket",
    "AskingSocket",
    "Display",
    "HttpServer",
    "Live",
    "begin_to_end",
    "declare_fate",
    "empty_standard_output",
    "has_no_reader",
    "has_prefixes",
    "headers_of",
    "listen",
    "run_directory",
    "serve_live",
    "time_left",
]
