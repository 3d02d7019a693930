"""Standard output and standard error with any encoding, closed early, or full."""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata

_ERRORS = "gatedrnn.in_plain_letters"
_SIGNS = {
    "−": "-", "–": "-", "—": "-", "─": "-", "•": "*", "·": "*", "…": "...", "′": "'", "“": '"', "”": '"', "’": "'",
    "±": "+-", "≈": "~", "≥": ">=", "≤": "<=", "→": "->", "√": "sqrt ", "∞": "infinity", "°": " degrees",
    "│": "|", "╭": "-", "╮": "-", "╰": "-", "╯": "-", "━": "-", "╸": "-", "╺": "-",
}  # fmt: skip


def in_plain_letters(text: str) -> str:
    """The text in ASCII: φ as phi, z³ as z^3. A character without an equivalent becomes a question mark."""
    return "".join(character if character.isascii() else _plain(character) for character in text)


def printable(text: str) -> str:
    """The text in one line that is safe for a terminal: control characters from a file's name or content are escaped as
    in Python."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()
        for character in text
    )


def without_controls(text: str) -> str:
    """The text with its control characters escaped, which a terminal could take for commands.

    All others stay: the words of some languages need characters that :func:`printable` escapes.
    """
    return "".join(printable(letter) if unicodedata.category(letter) == "Cc" else letter for letter in text)


def encodable(text: str, encoding: str) -> str:
    """The text if the encoding has its characters; otherwise in plain letters."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return in_plain_letters(text)
    return text


def prepare() -> None:
    """Write characters that the encoding of standard output or standard error lacks in plain letters from now on.

    A stream that was closed before the start is replaced by the null device.
    """
    codecs.register_error(_ERRORS, _replaced)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the rest of the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def abandon_output() -> None:
    """Discard the rest of the output: otherwise Python would try to write it at exit and print an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _plain(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    name = unicodedata.name(character, "")
    if name.startswith("GREEK ") and "LETTER " in name:
        letter = name.rpartition("LETTER ")[2].partition(" ")[0]
        return letter.capitalize() if "CAPITAL" in name else letter.lower()
    like = unicodedata.normalize("NFKD", character).replace("⁄", "/").encode("ascii", "ignore").decode()
    return (f"^{like}" if name.startswith("SUPERSCRIPT ") else like) or "?"


def _replaced(wrong: UnicodeError) -> tuple[str, int]:
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    return in_plain_letters(wrong.object[wrong.start : wrong.end]), wrong.end
