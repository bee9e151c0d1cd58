# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a peer offers, as the library lists it."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

import numpy as np

from ._dtypes import from_wire

#: struct rdmatensor_list_entry; behind it the dims, the name and a zero
_ENTRY = struct.Struct("=IiQqQIHHBB6x")
_DEAD = 1


@dataclass(frozen=True)
class Offered:
    """A tensor that can be got, or whose get fails: then there is an error, and no dtype"""

    name: str
    step: int
    dtype: np.dtype | None
    shape: tuple[int, ...]
    nbytes: int
    #: Gets that are left; None: until it is withdrawn
    uses: int | None
    dead: bool = False
    error: OSError | None = None


def parse(listed: memoryview) -> list[Offered]:
    """All of a list"""
    offered = []
    at = 0
    while at < len(listed):
        (length, status, _, step, nbytes, uses, number, name_len, ndims,
         flags) = _ENTRY.unpack_from(listed, at)
        shape = struct.unpack_from(f"={ndims}Q", listed, at + _ENTRY.size)
        start = at + _ENTRY.size + 8 * ndims
        name = bytes(listed[start:start + name_len]).decode(errors="surrogateescape")
        offered.append(Offered(
            name, step, None if status else from_wire(number), shape, nbytes, uses or None,
            bool(flags & _DEAD),
            OSError(-status, f"{name}: {os.strerror(-status)}") if status else None))
        at += length
    return offered
