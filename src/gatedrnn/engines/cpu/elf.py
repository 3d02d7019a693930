"""Whether a shared library is whole. The system's loader maps a truncated one, and its first read is a bus error."""

from __future__ import annotations

import os
import struct
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SEGMENT = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_LOADED = 1  # PT_LOAD


def check_whole(file: Path) -> None:
    """Raise ValueError for a file that is not regular, or a 64-bit ELF file that lacks a part named in its header.

    Everything else is left to the loader, which refuses it before it maps anything.
    """
    if file.exists() and not file.is_file():
        raise ValueError("it is not a file")
    with file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(_HEADER.size)
        if start[:4] != b"\x7fELF" or start[4:6] != b"\x02\x01":  # of 64 bits, the smallest byte first
            return
        if len(start) < _HEADER.size:
            raise ValueError("the file is truncated")
        _, _, _, _, _, segments, sections, _, _, entry, count, section_size, section_count, _ = _HEADER.unpack(start)
        if entry != _SEGMENT.size:
            raise ValueError("its header is damaged")
        ends = [segments + entry * count, sections + section_size * section_count]
        if max(ends) <= size:
            stream.seek(segments)
            for kind, _, offset, _, _, length, _, _ in _SEGMENT.iter_unpack(stream.read(entry * count)):
                if kind == _LOADED:
                    ends.append(offset + length)
    if max(ends) > size:
        raise ValueError(f"the file is truncated: it has {size} bytes of at least {max(ends)}")
