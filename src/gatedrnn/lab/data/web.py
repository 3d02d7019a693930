"""Requests for one file, with every answer that is not the file turned into an error."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPMessage, HTTPResponse
from typing import IO
from urllib.parse import urlsplit

from gatedrnn import __version__
from gatedrnn.lab.data.errors import DataError
from gatedrnn.lab.data.files import CHUNK, File

_TRICKLE = 1024  # bytes; fewer within the time of a stall are a stall too
_LATER = (408, 425, 429, 500, 502, 503, 504)  # answers of a server that may give the file later
_RANGE_REFUSED = 416


class DownloadError(DataError):
    """The address does not give the file."""


class UnreachableError(DownloadError):
    """The address cannot be reached: there may be no network."""


class BrokenOffError(Exception):
    """The connection ended early, or the server is busy; another attempt may get the rest."""


class _RangeRefusedError(Exception):
    """The server does not continue from the byte that was asked for."""


def pieces(file: File, begin: int, stall: float) -> Iterator[tuple[int, bytes]]:
    """What one connection gives of the file, each piece with the position of its first byte.

    Asks for the bytes from ``begin`` on; a server that cannot continue there begins from the start. Raises
    BrokenOffError, also if nothing comes for ``stall`` seconds, and DownloadError for an answer that is not the file.
    """
    try:
        begin, response = _answer(file, begin, stall)
    except _RangeRefusedError:
        begin, response = _answer(file, 0, stall)
    with response:
        since, arrived = time.monotonic(), 0
        while piece := _read(response, stall):
            yield begin, piece
            begin, arrived = begin + len(piece), arrived + len(piece)
            if time.monotonic() - since > stall:
                if arrived < _TRICKLE:
                    raise BrokenOffError(f"only {arrived} bytes in {stall:g} s")
                since, arrived = time.monotonic(), 0


def _read(response: HTTPResponse, stall: float) -> bytes:
    try:
        return response.read1(CHUNK)
    except TimeoutError:
        raise BrokenOffError(f"no data for {stall:g} s") from None
    except (OSError, http.client.HTTPException) as broken:
        raise BrokenOffError(str(broken) or type(broken).__name__) from broken


def _answer(file: File, begin: int, stall: float) -> tuple[int, HTTPResponse]:
    """The server's answer, and the position in the file at which it begins."""
    response = _opened(file, begin, stall)
    try:
        if response.status == 206 and begin:
            _check_range(response, begin, file.size)
        elif response.status == 200:
            begin = 0
        else:
            raise DownloadError(f"{file.address} answered {response.status} {response.reason}")
        if response.headers.get_content_type() == "text/html":
            raise DownloadError(
                f"{file.address} returned a web page instead of {file.name}; does the network require a login?"
            )
        offered = response.headers.get("Content-Length", "")
        if offered.isdecimal() and int(offered) != file.size - begin:
            raise DownloadError(f"{file.address} has {int(offered):,} bytes, expected {file.size - begin:,}")
    except BaseException:
        response.close()
        raise
    return begin, response


def _check_range(response: HTTPResponse, begin: int, size: int) -> None:
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != begin or match[2] not in ("*", str(size)):
        raise _RangeRefusedError


def _opened(file: File, begin: int, stall: float) -> HTTPResponse:
    if file.address is None:
        raise DownloadError(f"{file.name} has no address to download from")
    headers = {"User-Agent": f"gatedrnn/{__version__}", "Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    request = urllib.request.Request(file.address, headers=headers)
    try:
        response: HTTPResponse = urllib.request.build_opener(_Redirects).open(request, timeout=stall)
    except urllib.error.HTTPError as answer:
        with answer:
            raise _refusal(file, answer, begin) from answer
    except urllib.error.URLError as away:
        if isinstance(away.reason, TimeoutError):
            raise BrokenOffError(f"no answer for {stall:g} s") from away
        raise UnreachableError(f"cannot reach {file.address}: {away.reason}") from away
    except TimeoutError as stalled:
        raise BrokenOffError(f"no answer for {stall:g} s") from stalled
    except (OSError, http.client.HTTPException) as broken:
        raise BrokenOffError(str(broken) or type(broken).__name__) from broken
    return response


def _refusal(file: File, answer: urllib.error.HTTPError, begin: int) -> Exception:
    if answer.code == _RANGE_REFUSED and begin:
        return _RangeRefusedError()
    if answer.code in _LATER:
        return BrokenOffError(f"the server answered {answer.code} {answer.reason}")
    if 300 <= answer.code < 400:
        return DownloadError(f"{file.address} redirects in a loop")
    return DownloadError(f"{file.address} answered {answer.code} {answer.reason}")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to http or to another protocol."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if new != "https" and (old, new) != ("http", "http"):
            raise DownloadError(f"{req.full_url} redirects to {newurl}: refused, the connection would not be secure")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
