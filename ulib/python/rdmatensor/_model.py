# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Models: the tensors of a safetensors file, or of a dict, as `rdmatensor serve` has them."""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import time
import warnings
from typing import Any, Mapping

import numpy as np

from ._dtypes import from_safetensors, is_countable, is_known, to_safetensors
from ._ffi import DIMS_MAX
from ._node import Node, Peer, _as_array, offer_all

#: The name under which a model's header is offered (`rdmatensor serve`, `fetch --all`)
INDEX = "rdmatensor.index"
HEADER_MOST = 100_000_000
#: Seconds without a model after which load() says so
_WARNING_AFTER = 10.0
#: Of a header: what is no tensor
_METADATA = "__metadata__"


def load(host: str, *, slices: Mapping[str, Any] | None = None,
         timeout: float | None = 600.0) -> dict[str, np.ndarray]:
    """All tensors of the model that "HOST[:PORT]" serves, by `rdmatensor serve` or serve().

    ``slices`` has of some names the part that is wanted, as Peer.get() has it: a rank loads its
    columns with ``{"w": numpy.s_[:, 1024:2048]}``. KeyError: the model has no such tensor.

    The arrays are views of memory that the tensors were written to; nothing is copied. The whole
    of it may take ``timeout`` seconds.
    """
    begun = time.monotonic()
    node = Node(timeout=timeout)
    peer = node.connect(host)
    entries = _entries_of(_index_of(peer, begun, timeout), host)
    peer.timeout = _left(begun, timeout)
    slices = slices or {}
    for name in slices:
        if name not in entries:
            raise KeyError(name)
    parts = {name: slices.get(name) for name in entries}
    arrays = peer.get_many(parts if slices else list(entries))
    return {name: arrays[name] if slices.get(name) is not None else
            _shaped(arrays[name], name, entry) for name, entry in entries.items()}


def _left(begun: float, timeout: float | None) -> float | None:
    return None if timeout is None else max(0.0, timeout - (time.monotonic() - begun))


def _index_of(peer: Peer, begun: float, timeout: float | None) -> np.ndarray:
    """A server may still read its model. Where none is, nobody is to wait for long without a word"""
    try:
        return peer.get(INDEX, wait=False)
    except FileNotFoundError:
        pass
    none = (f"{peer.host} is up and offers no model: `rdmatensor serve` or rdmatensor.serve() does; "
            f"what a node offers by its names is connect({peer.host!r})[name]")
    left = _left(begun, timeout)
    if left is None or left > _WARNING_AFTER:
        peer.timeout = _WARNING_AFTER
        try:
            return peer[INDEX]
        except TimeoutError:
            warnings.warn(f"load: {none}; going on for " +
                          ("ever" if left is None else f"{left - _WARNING_AFTER:.0f} s"),
                          RuntimeWarning, stacklevel=3)
    peer.timeout = _left(begun, timeout)
    try:
        return peer[INDEX]
    except TimeoutError as error:
        raise TimeoutError(errno.ETIMEDOUT, f"load: {none}") from error


def _entries_of(index: np.ndarray, host: str) -> dict[str, Any]:
    """What a peer says is not trusted, and judged before anything is asked for"""
    if index.nbytes > HEADER_MOST:
        raise ValueError(f"{host}: a header of {index.nbytes} bytes: the most is {HEADER_MOST}")
    header = _header(index.tobytes(), host)
    header.pop(_METADATA, None)
    for name, entry in header.items():
        _judge(host, name, entry)
    return header


def _header(text: bytes, where: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{where}: the header is no object: it is no safetensors file's")
    return header


def _judge(where: str, name: str, entry: Any) -> tuple[int, int, np.dtype, tuple[int, ...]]:
    """The first byte, the one behind the last, type and shape"""
    try:
        first, last = entry["data_offsets"]
        known, shape = entry["dtype"], tuple(entry["shape"])
        good = isinstance(known, str) and all(
            type(number) is int and 0 <= number < 1 << 63 for number in (first, last, *shape))
    except (TypeError, KeyError, ValueError):
        good = False
    if not good or first > last:
        raise ValueError(f"{where}: tensor {name!r}: no dtype, shape and data_offsets")
    dtype = from_safetensors(known)
    if len(shape) > DIMS_MAX or not is_countable(dtype, shape):
        raise ValueError(f"{where}: tensor {name!r}: no array has the shape {list(shape)}: there are "
                         f"at most {DIMS_MAX} dimensions, and 2**63 bytes")
    return first, last, dtype, shape


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
            arrays = {name: _one_of_model(name, value) for name, value in model.items()}
            offer_all(node, arrays)
            node.offer(INDEX, np.frombuffer(_header_of(arrays), "u1"))
    except BaseException:
        node.close()
        raise
    return node


def _one_of_model(name: str, value: Any) -> np.ndarray:
    if name == _METADATA:
        raise ValueError(f"tensor {name!r}: in a header that is no tensor: call it something else")
    try:
        array = _as_array(value)
        to_safetensors(array.dtype)
    except (TypeError, ValueError) as error:
        raise type(error)(f"tensor {name!r}: {error}") from None
    return array


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
        header = _header(text, path)
        # Not closed here: an error that is on its way may hold an array in it
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for name, entry in header.items():
            if name != _METADATA:
                _offer_entry(node, path, name, entry, data, 8 + length)
    node.offer(INDEX, np.frombuffer(text, "u1"))


def _offer_entry(node: Node, path: str, name: str, entry: Any, data: mmap.mmap,
                 begin: int) -> None:
    first, last, dtype, shape = _judge(path, name, entry)
    if last > len(data) - begin:
        raise ValueError(f"{path}: tensor {name}: bytes {first} to {last} are not in the file")
    array = np.frombuffer(data, "u1", last - first, begin + first) if last > first else \
        np.empty(0, "u1")
    if not is_known(entry["dtype"]):
        node.offer(name, array, _opaque=shape)
    elif math.prod(shape) * dtype.itemsize == last - first:
        node.offer(name, array.view(dtype).reshape(shape))
    else:
        raise ValueError(f"{path}: tensor {name}: {last - first} bytes are not its shape's")
