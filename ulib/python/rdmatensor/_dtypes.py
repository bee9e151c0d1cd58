# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Element types: of numpy, of the wire, and of safetensors.

What numpy has no type for is an unsigned integer of the same length, whose
metadata have the type's name, so that it goes out again as what it came in:
``array.dtype.metadata == {"rdmatensor": "bfloat16"}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ._ffi import ffi, lib

#: Opaque: only a header tells what it is
VARIANT = 21

_NUMPY = {
    1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 8: "c8", 9: "i8", 10: "?",
    17: "u2", 18: "c16", 19: "f2", 22: "u4", 23: "u8",
}
_SAFETENSORS = {
    "BOOL": 10, "U8": 4, "I8": 6, "I16": 5, "U16": 17, "F16": 19, "BF16": 14, "I32": 3,
    "U32": 22, "F32": 1, "F64": 2, "I64": 9, "U64": 23, "C64": 8, "F8_E5M2": 24,
    "F8_E4M3": 25,
}
_TO_WIRE = {np.dtype(name): number for number, name in _NUMPY.items()}
_FROM_WIRE = {number: np.dtype(name) for number, name in _NUMPY.items()}


def _name(number: int) -> str | None:
    name = lib.rdmatensor_data_type_name(number)
    return ffi.string(name).decode() if name != ffi.NULL else None


_TAGGED = {}
for _number in range(1, 64):
    _bytes = lib.rdmatensor_data_type_size(_number)
    if _number not in _FROM_WIRE and _bytes in (1, 2, 4, 8):
        _TAGGED[_name(_number)] = _number
        _FROM_WIRE[_number] = np.dtype(f"u{_bytes}", metadata={"rdmatensor": _name(_number)})


def to_wire(dtype: np.dtype) -> int:
    """The number of a numpy type. TypeError: it has none"""
    if not dtype.isnative:
        raise TypeError(
            f"dtype {dtype} has the other byte order: convert it with "
            "array.astype(array.dtype.newbyteorder('='))"
        )
    if dtype.metadata and "rdmatensor" in dtype.metadata:
        tag = dtype.metadata["rdmatensor"]
        number = _TAGGED.get(tag, 0)
        if lib.rdmatensor_data_type_size(number) != dtype.itemsize:
            raise TypeError(f"dtype {dtype} says in its metadata that it is {tag!r}, which is no "
                            f"type of {dtype.itemsize} bytes: make it by one that a get has returned")
        return number
    # ml_dtypes' and torch's, by name
    if dtype.name in _TAGGED:
        return _TAGGED[dtype.name]
    if dtype.hasobject:
        raise TypeError(f"dtype {dtype} is of Python's objects: tensors are of numbers")
    if dtype not in _TO_WIRE:
        raise TypeError(
            f"dtype {dtype} cannot be moved: use numbers, or view it as uint8 "
            "(array.view('u1'))"
        )
    return _TO_WIRE[dtype]


def is_alike(dtype: np.dtype, other: np.dtype) -> bool:
    """Whether both are one type: numpy does not look at names in metadata"""
    try:
        return to_wire(dtype) == to_wire(other)
    except TypeError:
        return False


def is_countable(dtype: np.dtype, shape: Iterable[int]) -> bool:
    """Whether numpy has arrays of that shape, which may be empty and long"""
    return math.prod(dim for dim in shape if dim) * dtype.itemsize < 1 << 63


def from_wire(number: int) -> np.dtype:
    """The numpy type of a number; opaque ones are bytes"""
    return _FROM_WIRE.get(number, np.dtype("u1"))


def to_safetensors(dtype: np.dtype) -> str:
    """The name of a numpy type in a safetensors header"""
    number = to_wire(dtype)
    for name, other in _SAFETENSORS.items():
        if number == other:
            return name
    raise TypeError(f"dtype {dtype} has no name in safetensors")


def from_safetensors(name: str) -> np.dtype:
    """The numpy type of one of a header; of one that is not known: bytes"""
    return from_wire(_SAFETENSORS.get(name, 0))


def is_known(name: str) -> bool:
    """Whether a header's type has a number of its own"""
    return name in _SAFETENSORS
