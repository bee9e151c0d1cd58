# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Models: the tensors of a safetensors file, or of a dict, as `rdmatensor serve` has them."""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
from typing import Any, Mapping

import numpy as np

from ._dtypes import from_safetensors, is_known, to_safetensors
from ._node import Node, _as_array, offer_all

#: The name under which a model's header is offered (`rdmatensor serve`, `fetch --all`)
INDEX = "rdmatensor.index"
HEADER_MOST = 100_000_000


def load(host: str, *, slices: Mapping[str, Any] | None = None,
         timeout: float | None = 600.0) -> dict[str, np.ndarray]:
    """All tensors of the model that "HOST[:PORT]" serves, by `rdmatensor serve` or serve().

    ``slices`` has of some names the part that is wanted, as Peer.get() has it: a rank loads its
    columns with ``{"w": numpy.s_[:, 1024:2048]}``. KeyError: the model has no such tensor.

    The arrays are views of memory that the tensors were written to; nothing is copied. The whole
    of it may take ``timeout`` seconds.
    """
    peer = Node(timeout=timeout).connect(host)
    entries = _entries_of(peer[INDEX], host)
    slices = slices or {}
    for name in slices:
        if name not in entries:
            raise KeyError(name)
    parts = {name: slices.get(name) for name in entries}
    arrays = peer.get_many(parts if slices else list(entries))
    return {name: arrays[name] if slices.get(name) is not None else
            _shaped(arrays[name], name, entry) for name, entry in entries.items()}


def _entries_of(index: np.ndarray, host: str) -> dict[str, Any]:
    """What a peer says is not trusted, and judged before anything is asked for"""
    if index.nbytes > HEADER_MOST:
        raise ValueError(f"{host}: a header of {index.nbytes} bytes: the most is {HEADER_MOST}")
    header = json.loads(index.tobytes())
    if not isinstance(header, dict):
        raise ValueError(f"{host}: the header is no object")
    header.pop("__metadata__", None)
    for name, entry in header.items():
        try:
            first, last = entry["data_offsets"]
            good = isinstance(entry["dtype"], str) and 0 <= first <= last and all(
                type(dim) is int and 0 <= dim < 1 << 63 for dim in entry["shape"])
        except (TypeError, KeyError, ValueError):
            good = False
        if not good:
            raise ValueError(f"{host}: tensor {name!r}: no dtype, shape and data_offsets")
    return header


def _shaped(array: np.ndarray, name: str, entry: Mapping[str, Any]) -> np.ndarray:
    dtype, shape = from_safetensors(entry["dtype"]), tuple(entry["shape"])
    if array.nbytes != entry["data_offsets"][1] - entry["data_offsets"][0]:
        raise ValueError(f"tensor {name}: {array.nbytes} bytes are not what the header says")
    if math.prod(shape) * dtype.itemsize != array.nbytes:
        # Elements shorter than a byte, or of a type that is not known here
        return array
    return array.reshape(-1).view("u1").view(dtype).reshape(shape)


def serve(model: str | os.PathLike | Mapping[str, Any], listen: str = ":18521") -> Node:
    """Offer a safetensors file, or a dict of arrays, for load() and `rdmatensor fetch --all`.

    Return: the node; its close() ends the offers.
    """
    if isinstance(model, (str, os.PathLike)):
        if os.path.isdir(model):
            raise IsADirectoryError(
                errno.EISDIR, f"{model}: a folder of shards: `rdmatensor serve` takes those"
            )
        # Before a device is looked for
        os.stat(model)
    node = Node(listen)
    try:
        if isinstance(model, (str, os.PathLike)):
            _offer_file(node, os.fspath(model))
        else:
            arrays = {name: _as_array(value) for name, value in model.items()}
            offer_all(node, arrays)
            node.offer(INDEX, np.frombuffer(_header_of(arrays), "u1"))
    except BaseException:
        node.close()
        raise
    return node


def _header_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": to_safetensors(array.dtype),
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _offer_file(node: Node, path: str) -> None:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(HEADER_MOST, size - 8):
            raise ValueError(f"{path}: a header of {length} bytes: it is no safetensors file")
        text = file.read(length)
        header = json.loads(text)
        if not isinstance(header, dict):
            raise ValueError(f"{path}: the header is no object: it is no safetensors file")
        # Not closed here: an error that is on its way may hold an array in it
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for name, entry in header.items():
            if name != "__metadata__":
                _offer_entry(node, path, name, entry, data, 8 + length)
    node.offer(INDEX, np.frombuffer(text, "u1"))


def _offer_entry(node: Node, path: str, name: str, entry: Any, data: mmap.mmap,
                 begin: int) -> None:
    try:
        first, last = entry["data_offsets"]
        dtype, shape = from_safetensors(entry["dtype"]), tuple(entry["shape"])
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{path}: tensor {name}: no dtype, shape and data_offsets") from None
    if not 0 <= first <= last <= len(data) - begin:
        raise ValueError(f"{path}: tensor {name}: bytes {first} to {last} are not in the file")
    array = np.frombuffer(data, "u1", last - first, begin + first) if last > first else \
        np.empty(0, "u1")
    if not is_known(entry["dtype"]):
        node.offer(name, array, _opaque=shape)
    elif math.prod(shape) * dtype.itemsize == last - first:
        node.offer(name, array.view(dtype).reshape(shape))
    else:
        raise ValueError(f"{path}: tensor {name}: {last - first} bytes are not its shape's")
