# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Nodes and peers."""

from __future__ import annotations

import asyncio
import collections
import ctypes
import errno
import functools
import itertools
import math
import operator
import os
import struct
import threading
import time
import weakref
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from ._dtypes import VARIANT, from_wire, is_alike, is_countable, to_wire
from ._ffi import DIMS_MAX, ffi, lib, libc
from ._list import Offered, parse

_handles: "weakref.WeakSet[_Handle]" = weakref.WeakSet()


#: struct rdmatensor_tensor, to read many at once; its look: data_type, ndims and dims
_WORDS = ffi.sizeof("struct rdmatensor_tensor") // 8
_TENSOR = np.dtype({
    "names": ["data", "bytes", "step", "look"],
    "formats": ["u8", "u8", "i8", f"V{8 + 8 * DIMS_MAX}"],
    "offsets": [0, 8, 16, 24],
    "itemsize": ffi.sizeof("struct rdmatensor_tensor"),
})

#: Memory that nobody needs any more is given back together, unless it is more than that
_IDLE_BYTES = 1 << 20
_IDLE_MOST = 64

_ndarray = np.ndarray

#: RDMATENSOR_REGION_ALIGN
_ALIGN = 64
#: RDMATENSOR_TENSOR_NOWAIT
_NOWAIT = 2
#: What remedies of the library name
_HERE = {
    "rdmatensor_node_timeout()": "node.timeout",
    "rdmatensor_node_free()": "del of its arrays",
    "rdmatensor_wait_generation()": "node.wait_generation()",
}
#: Any step will do
_ANY_STEP = -(1 << 63)
#: Seconds beyond which it is for ever: nanoseconds are of 64 bits
_TIMEOUT_MOST = 1e9


class _Handle:
    """The library's node. It lives as long as an array in its memory does"""

    # Of one whose making a signal's handler has ended
    pointer: Any = ffi.NULL
    forked = False

    def __init__(self, listen: str | None):
        out = ffi.new("struct rdmatensor_node **")
        self._begin()
        _handles.add(self)
        try:
            _check(lib.rdmatensor_node_open(out, _address(listen) if listen else ffi.NULL))
        finally:
            # Also if a signal's handler raises when it is open: the handle ends it
            self.pointer = out[0]
        lib.rdmatensor_node_interruptible(self.pointer, 1)

    def _begin(self) -> None:
        self.forked = False
        self.idle: collections.deque[int] = collections.deque()
        self.idle_bytes = 0
        self.pointer = ffi.NULL
        #: Open ones, by their addresses: they end before the node, in whichever order all is collected
        self.tables: set[int] = set()

    def __del__(self):
        if self.pointer == ffi.NULL or self.forked:
            return
        for table in list(self.tables):
            self.close_table(table)
        self._end()

    def _end(self) -> None:
        pointer, self.pointer = self.pointer, ffi.NULL
        lib.rdmatensor_node_close(pointer)

    def close_table(self, table: int) -> None:
        """Once, whoever comes first"""
        try:
            self.tables.remove(table)
        except KeyError:
            return
        if self.pointer != ffi.NULL and not self.forked:
            lib.rdmatensor_node_table_close(
                ffi.cast("struct rdmatensor_node_table *", table))

    def give_back(self, address: int, nbytes: int) -> None:
        """What no array was made over"""
        self.idle.append(address)
        self.idle_bytes += nbytes
        if self.idle_bytes > _IDLE_BYTES or len(self.idle) >= _IDLE_MOST:
            self.flush()

    def flush(self) -> None:
        """Give back what is idle"""
        if self.forked:
            return
        idle: list[int] = []
        self.idle_bytes = 0
        try:
            # One by one, until there is none: another thread, or the collector, may be here as well
            idle.extend(iter(self.idle.popleft, None))
        except IndexError:
            pass
        # In a cycle that is collected the node may have gone, and its memory with it
        if not idle or self.forked or self.pointer == ffi.NULL:
            return
        left, nr = idle, len(idle)
        try:
            kept = ffi.new("uintptr_t[]", idle)
            pointers = ffi.cast("void **", kept)
            # Before: what a signal's handler ends afterwards has been given back
            left = []
            lib.rdmatensor_node_free_many(self.pointer, pointers, nr)
        finally:
            self.idle.extend(left)


class _Memory:
    """Memory of a node's, as numpy sees it: the base of the arrays in it"""

    __slots__ = ()
    #: Not before the memory is the view's, and not its maker's any more
    handle: _Handle
    address: int
    #: Of the view, which is the tensor's or more
    nbytes: int
    #: Of an array that can be offered as it is: where the node has it noted
    own: dict[int, int] | None = None

    def __del__(self):
        try:
            handle = self.handle
        except AttributeError:
            return
        # Before it can be another's
        if self.own is not None:
            self.own.pop(self.address, None)
        # As give_back(), whose call takes as long as all of this
        handle.idle.append(self.address)
        handle.idle_bytes += self.nbytes
        if handle.idle_bytes > _IDLE_BYTES or len(handle.idle) >= _IDLE_MOST:
            handle.flush()


@functools.lru_cache(None)
def _memory_type(bits: int, offered: bool) -> Any:
    """Views of ctypes have their lengths in their types: of powers of two, so that these are few.

    What is behind the tensor's bytes is another's: nothing looks at a view but the array over it.
    """
    return type("_Memory", (_Memory, ctypes.c_char * (1 << bits)), {
        "__slots__": ("handle", "address") + (("own",) if offered else ()),
        "nbytes": 1 << bits, "raw": None, "value": None, "__reduce__": None,
    })


class _Form:
    """What an array looks like: many of a model's are alike"""

    __slots__ = ("dtype", "shape", "nbytes", "memory_at")

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...]):
        self.dtype, self.shape = dtype, shape
        self.nbytes = math.prod(shape) * dtype.itemsize
        #: Makes what it lies in. Not before: no type is as long as some shapes that peers tell
        self.memory_at: Any = None

    def memory_type(self, offered: bool) -> Any:
        """``offered``: an array in it can be offered as it is"""
        return _memory_type((max(self.nbytes, 1) - 1).bit_length(), offered)


@functools.lru_cache(4096)
def _form(number: int, shape: tuple[int, ...]) -> _Form:
    dtype = from_wire(number)
    # Of none that has a dim which numpy cannot count to: bytes
    return _Form(dtype, shape) if is_countable(dtype, shape) else _Form(np.dtype("u1"), (0,))


@functools.lru_cache(4096)
def _form_of(look: bytes) -> _Form:
    """By a tensor's type, ndims and dims, as they lie in its struct"""
    number, ndims, *dims = struct.unpack(f"=II{DIMS_MAX}Q", look)
    return _form(number, tuple(dims[:ndims]))


def _view(address: int, form: _Form, offered: bool = False) -> np.ndarray:
    """An array over memory of a node's, which its last view gives back once its base has a handle"""
    memory = form.memory_type(offered).from_address(address)
    memory.address = address
    return _ndarray(form.shape, form.dtype, memory)


def _after_fork() -> None:
    global _default_lock
    # Another thread of the parent's may have held it
    _default_lock = threading.RLock()
    for handle in list(_handles):
        handle.forked = True


os.register_at_fork(after_in_child=_after_fork)


def _said() -> str:
    """Why this thread's last call failed: until its next one. Remedies by the names that they have here"""
    said = ffi.string(lib.rdmatensor_node_error()).decode(errors="replace")
    for name, here in _HERE.items():
        said = said.replace(name, here)
    return said


def _check(err: int) -> None:
    """OSError has subclasses by errno: TimeoutError, ConnectionRefusedError and others"""
    if err:
        raise OSError(-err, _said() or os.strerror(-err))


def _seconds(timeout: float | None) -> float | None:
    """A timeout; None: for ever"""
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"timeout is seconds, from 0 on, or None for ever, and not {timeout!r}")
    return None if timeout is None or timeout > _TIMEOUT_MOST else timeout


class _Until:
    """The end of a call that is repeated after signals, whose handlers may make calls of their own"""

    def __init__(self, node: "Node", what: str):
        timeout = node._timeout
        # 1: long ago, as 0 would be never
        self._end_ns = 0 if timeout is None else max(1, time.monotonic_ns() + int(timeout * 1e9))
        self._what = what

    def run(self, call: Any) -> tuple[int, str]:
        """The call's errno, with the line of it; -EINTR: once more, and its handler has run.

        -ETIMEDOUT also if there is no time for that.
        """
        former = 0
        try:
            # A handler's calls, which may come at any time, put back what they find
            former = lib.rdmatensor_node_until(self._end_ns)
            err = call()
            said = _said() if err else ""
        finally:
            lib.rdmatensor_node_until(former)
        if err == -errno.EINTR and self._end_ns and time.monotonic_ns() >= self._end_ns:
            return -errno.ETIMEDOUT, f"{self._what}: interrupted until the timeout was over"
        return err, said


def _with_failed(error: OSError, failed: dict[str, int]) -> OSError:
    # Not by who raises it: its frame, which the error has, would have the error
    error.failed = failed  # type: ignore[attr-defined]
    return error


def _end_of(node: "Node", call: Any, what: str) -> OSError | None:
    """However many signals come. What is raised is a handler's: how the call has ended is not known"""
    until = _Until(node, what)
    err = -errno.EINTR
    while err == -errno.EINTR:
        err, said = until.run(call)
    return OSError(-err, said or os.strerror(-err)) if err else None


def _until_it_ends(node: "Node", call: Any, what: str) -> None:
    """However many signals come, whose handlers may raise"""
    error = _end_of(node, call, what)
    if error is not None:
        raise error


def _as_array(value: Any, node: "Node | None" = None) -> np.ndarray:
    """One that is contiguous, or a view of the node's own memory"""
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    array = np.asarray(value)
    if not array.flags.c_contiguous and not (node is not None and node._is_own(array) and
                                             min(array.strides) >= 0):
        raise ValueError(
            f"an array of shape {array.shape} and strides {array.strides} has holes or another "
            "order: offer numpy.ascontiguousarray(array), or a view of an array of node.empty()"
        )
    if array.ndim > DIMS_MAX:
        raise ValueError(f"{array.ndim} dimensions are more than {DIMS_MAX}")
    return array


def _set_strides(tensor: Any, array: np.ndarray, dropped: Iterable[int] = ()) -> Any:
    """Where its elements lie, with a dim for each that it has dropped. Return: what that is kept in"""
    strides = list(zip(array.strides, array.shape))
    for dim in sorted(dropped):
        strides.insert(dim, (0, 1))
    kept = ffi.new("struct rdmatensor_stride[]", strides)
    tensor.strides = kept
    tensor.ndims = len(strides)
    return kept


def _unfit(out: np.ndarray) -> str:
    """Why nothing can be got there, and what can be done"""
    if not out.flags.writeable:
        return "is not writeable: give a copy of it"
    if out.dtype.hasobject:
        return f"is of {out.dtype}, and tensors are of numbers"
    if min(out.strides, default=0) < 0:
        return "has negative strides: give an array that is not reversed"
    return ""


def _span(array: np.ndarray) -> int:
    """Bytes from its first element to behind its last one"""
    return array.itemsize + sum((dim - 1) * stride for dim, stride in
                                zip(array.shape, array.strides))


def _filled(out: np.ndarray, nbytes: int, form: _Form,
            dropped: Iterable[int] = ()) -> np.ndarray:
    """What was written to an array of the caller's"""
    if not out.flags.c_contiguous and nbytes:
        shape = tuple(dim for i, dim in enumerate(form.shape) if i not in dropped)
        # Its other elements were left as they are
        return out if shape == out.shape else out[tuple(slice(0, dim) for dim in shape)]
    alike = is_alike(out.dtype, form.dtype)
    # A type that numpy has not is an integer's, by another name
    if out.dtype.itemsize != 1 and out.dtype != form.dtype and not alike:
        raise TypeError(f"out is of {out.dtype}, and the tensor, which has been written there, "
                        f"is of {form.dtype}")
    if out.shape == form.shape and alike:
        return out
    filled = out.reshape(-1).view("u1")[:nbytes]
    return filled.view(form.dtype).reshape(form.shape)


def _structs(tensors: Any) -> np.ndarray:
    """Tensors as numpy moves them"""
    return np.frombuffer(ffi.buffer(tensors), f"V{_TENSOR.itemsize}")


class _Slice:
    """A part of a tensor whose shape only its peer knows"""

    def __init__(self, index: Any):
        index = index if isinstance(index, tuple) else (index,)
        if any(part is Ellipsis or part is None for part in index):
            raise ValueError("a slice with ... or None: the shape is the peer's: write : for each "
                             "dimension before the last one that is cut")
        if len(index) > DIMS_MAX:
            raise ValueError(f"a slice of {len(index)} dimensions: no tensor has more than {DIMS_MAX}")
        if not index:
            raise ValueError("a slice of no dimension is all of it: leave it out")
        self.ranges = ffi.new("struct rdmatensor_range[]", [_range(part) for part in index])
        self.ndims = len(index)
        #: Dims of one element that the result has not, as with numpy
        self.dropped = {i for i, part in enumerate(index) if not isinstance(part, slice)}

    def shape(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Of the result, which came with these"""
        return tuple(dim for i, dim in enumerate(dims) if i not in self.dropped)


def _range(part: Any) -> tuple[int, int]:
    """Start and length; all ones: to the end"""
    rest = (1 << 64) - 1
    if not isinstance(part, slice):
        if isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__"):
            raise TypeError(f"a slice of {part!r}: only start:stop and integers; rows by their "
                            "numbers are what DistTensor has")
        start = operator.index(part)
        part = slice(start, start + 1)
    start = 0 if part.start is None else operator.index(part.start)
    stop = None if part.stop is None else operator.index(part.stop)
    if part.step is not None and operator.index(part.step) != 1:
        raise ValueError(f"a slice with step {part.step}: only what lies together in a dimension")
    if start < 0 or (stop is not None and stop < 0):
        raise ValueError("a slice that counts from the end: the shape is the peer's, which list() tells")
    if start >= 1 << 63 or (stop is not None and stop >= 1 << 63):
        raise ValueError("a slice beyond 2**63 - 1: no dimension is so long")
    if stop is None:
        return start, rest
    return start, max(stop - start, 0)


def _several(names: Any) -> None:
    if isinstance(names, (str, bytes)):
        raise TypeError(f"names are several: [{names!r}]")


def _parts(names: Any) -> list[_Slice | None] | None:
    """What is wanted of each name; None: all of all"""
    if not isinstance(names, Mapping):
        return None
    return [None if part is None else _Slice(part) for part in names.values()]


def _set_parts(tensors: Any, parts: list[_Slice | None] | None) -> None:
    for tensor, part in zip(tensors, parts or ()):
        if part is not None:
            tensor.slice, tensor.slice_ndims = part.ranges, part.ndims


def _of_parts(results: list[np.ndarray], tensors: Any,
              parts: list[_Slice | None] | None) -> list[np.ndarray]:
    """With the shape that numpy's indexing would give"""
    for i, part in enumerate(parts or ()):
        dims = tuple(tensors[i].dims[0:tensors[i].ndims])
        # Not what is dead, or of a type that is not known: it comes as it is
        if part is not None and results[i].shape == dims:
            results[i] = results[i].reshape(part.shape(dims))
    return results


def _address(text: str) -> bytes:
    if "\0" in text:
        raise ValueError(f"{text!r} is no address: it has a zero byte")
    return text.encode()


def _encoded(name: str) -> bytes:
    # What list() has decoded so may be any bytes
    try:
        text = name.encode(errors="surrogateescape")
    except AttributeError:
        raise TypeError(f"a name is a str, and not {name!r}") from None
    if b"\0" in text or not text:
        raise ValueError(f"{name!r} is no name: it is empty, or has a zero byte")
    return text


def _pointers(names: list[str]) -> tuple[Any, Any]:
    """An array of C strings, and what they lie in, which has to live as long. Nobody writes to either"""
    # A model's are the same in each step
    return _former_pointers(tuple(names)) if 1 < len(names) <= 1024 else _new_pointers(names)


@functools.lru_cache(16)
def _former_pointers(names: tuple[str, ...]) -> tuple[Any, Any]:
    return _new_pointers(names)


def _new_pointers(names: Sequence[str]) -> tuple[Any, Any]:
    if len(names) < 2:
        text = ffi.new("char[]", b"".join(map(_encoded, names)))
        return ffi.new("uintptr_t[]", [int(ffi.cast("uintptr_t", text))]), text
    # All together: a call for each takes as long as what else is done with it
    try:
        text = ffi.new("char[]", "\0".join(names).encode(errors="surrogateescape"))
    except (TypeError, UnicodeEncodeError):
        for name in names:
            _encoded(name)
        raise
    ends = np.flatnonzero(np.frombuffer(ffi.buffer(text), "u1") == 0)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if len(ends) != len(names) or (starts == ends).any():
        for name in names:
            _encoded(name)
    pointers = ffi.new("uintptr_t[]", len(names))
    out = np.frombuffer(ffi.buffer(pointers), "u8")
    out[:] = starts
    # Not of signed ones: addresses may have tags in their top bits
    out += np.uint64(int(ffi.cast("uintptr_t", text)))
    return pointers, text


def _pointer(array: np.ndarray) -> Any:
    return ffi.cast("void *", array.__array_interface__["data"][0])


class _Kept:
    """Arrays of a generation that are offered as they are"""

    __slots__ = ("arrays", "visible")

    def __init__(self, arrays: list[np.ndarray], visible: bool = False):
        self.arrays = arrays
        self.visible = visible


class Node:
    """Offers tensors by name, and gets those of other nodes.

    ``listen`` is "HOST:PORT", ":PORT", ":0" (any port), or "HOST" (port 18521); without it the node
    only gets. ``timeout`` is how many seconds a get waits for a peer to come up and to offer the
    tensor; None: for ever. The device and all else are the environment's: RDMA_DEVICE, and the variables of
    rdmatensor-params(7).

    Threads may share a node. A forked child must not use it.
    """

    def __init__(self, listen: str | None = None, *, timeout: float | None = 10.0):
        if listen is not None and not isinstance(listen, str):
            raise TypeError(f"listen is text, as \":18521\", and not {listen!r}")
        timeout = _seconds(timeout)
        self._begin(_Handle(listen), timeout)

    @classmethod
    def _of(cls, handle: _Handle, timeout: float | None) -> "Node":
        """Around one that there is"""
        node = cls.__new__(cls)
        node._begin(handle, timeout)
        return node

    def _begin(self, handle: _Handle, timeout: float | None) -> None:
        self._lock = threading.RLock()
        self._offered: dict[tuple[str, int], np.ndarray | None] = {}
        self._rows: dict[str, np.ndarray | None] = {}
        #: Arrays that are offered as they are, of each group's generations, the visible one's last
        self._generations: dict[str, list[_Kept]] = {}
        self._own: dict[int, int] = {}
        #: Of each name what it may still offer as it is, since a signal's handler has raised
        self._unsure: dict[Any, list[Any]] = {}
        #: Who offers something in place of what a name has: one thread for each name
        self._setting = [threading.RLock() for _ in range(16)]
        self._handle: _Handle | None = handle
        self._timeout: float | None = None
        self.timeout = timeout

    def _live(self) -> _Handle:
        """For all of a call: another thread may close the node meanwhile.

        Before a lock as well: in a forked child nobody may be left to release it.
        """
        handle = self._handle
        if handle is None:
            raise ValueError("the node is closed")
        if handle.forked:
            raise RuntimeError("the node is another process's: make one after fork()")
        return handle

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, *_exc: Any) -> None:
        self.close()

    def close(self) -> None:
        """End all offers, and the node with the last array that is in its memory"""
        handle = self._handle
        if handle is None or handle.forked:
            self._handle = None
            return
        with self._lock:
            self._handle = None
            offered, self._offered = self._offered, {}
            rows, self._rows = self._rows, {}
            generations, self._generations = self._generations, {}
        failed: OSError | None = None
        for name, step in offered:
            try:
                self._withdraw(handle, name, step)
            except FileNotFoundError:
                pass
            except OSError as error:
                # It goes on as long as an array is in the node's memory
                failed = failed or error
        for name in rows:
            lib.rdmatensor_withdraw_rows(handle.pointer, _encoded(name))
        for group in generations:
            lib.rdmatensor_withdraw_generation(handle.pointer, _encoded(group))
        # As long as they were offered
        self._unsure.clear()
        if failed:
            raise failed

    def _withdraw(self, handle: _Handle, name: str, step: int) -> None:
        _until_it_ends(self, lambda: lib.rdmatensor_withdraw_offer(
            handle.pointer, _encoded(name), step), f"withdraw: {name!r}")

    @property
    def timeout(self) -> float | None:
        """Seconds that a get waits; None: for ever"""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        handle = self._live()
        seconds = _seconds(seconds)
        lib.rdmatensor_node_timeout(handle.pointer, -1 if seconds is None else int(seconds * 1000))
        self._timeout = seconds

    @property
    def port(self) -> int:
        """Where peers reach the node; 0: it does not listen"""
        handle = self._live()
        return lib.rdmatensor_node_port(handle.pointer)

    def empty(self, shape: int | tuple[int, ...], dtype: Any = "f4") -> np.ndarray:
        """An array, not cleared, that is offered without a copy"""
        return self._empty(shape, dtype, lib.rdmatensor_node_alloc)

    def empty_rows(self, shape: int | tuple[int, ...], dtype: Any = "f4") -> np.ndarray:
        """An array, not cleared, whose rows are offered without a copy, by offer_rows()"""
        return self._empty(shape, dtype, lib.rdmatensor_node_alloc_rows)

    def empty_out(self, shape: int | tuple[int, ...], dtype: Any = "f4") -> np.ndarray:
        """An array, not cleared, that peers write to: as ``out`` it, or a view of it, costs no copy"""
        return self._empty(shape, dtype, lib.rdmatensor_node_alloc_out, offered=False)

    def _empty(self, shape: int | tuple[int, ...], dtype: Any, alloc: Any,
               offered: bool = True) -> np.ndarray:
        dtype = np.dtype(dtype)
        to_wire(dtype)
        form = _Form(dtype, tuple(operator.index(dim) for dim in (
            shape if hasattr(shape, "__iter__") else (shape,))))
        if min(form.shape, default=0) < 0:
            raise ValueError(f"an array of shape {form.shape}: no dimension is negative")
        handle = self._live()
        handle.flush()
        came: list[Any] = []
        try:
            # In one step: a signal's handler may raise as soon as the call has returned
            came.extend(map(alloc, (handle.pointer,), (max(form.nbytes, 1),)))
            if came[0] == ffi.NULL:
                raise MemoryError(_said())
            start = int(ffi.cast("uintptr_t", came[0]))
            array = _view(start, form, offered)
            if offered:
                array.base.own = self._own
                self._own[start] = start + max(form.nbytes, 1)
            # The array's from here on, as in Peer._results()
            came[0], array.base.handle = ffi.NULL, handle
            return array
        finally:
            if came and came[0] != ffi.NULL:
                start = int(ffi.cast("uintptr_t", came[0]))
                self._own.pop(start, None)
                handle.give_back(start, form.nbytes)

    def _is_own(self, array: np.ndarray) -> bool:
        at = array.__array_interface__["data"][0]
        # A copy: what is collected meanwhile takes itself out
        return any(start <= at < end for start, end in self._own.copy().items())

    def offer(self, name: str, value: Any, *, step: int = 0, _opaque: Any = None) -> None:
        """Let peers get ``value`` by its name, as often as they want.

        It is copied, unless it is an array of ``empty()`` or a view of one, as ``array[:, 0:512]``:
        that is offered as it is, and must not be written to until it is withdrawn.
        """
        array = _as_array(value, self)
        tensor = ffi.new("struct rdmatensor_tensor *")
        tensor.step = step
        # pylint: disable-next=unused-variable # it lives as long as the call
        strides = self._describe(tensor, array, _opaque)
        self._live()
        with self._lock:
            handle = self._live()
            encoded = _encoded(name)
            self._note(self._offered, (name, step), array,
                       lambda: lib.rdmatensor_offer(handle.pointer, encoded, tensor))

    @staticmethod
    def _describe(tensor: Any, array: np.ndarray, opaque: Any = None) -> Any:
        """Return: what has to live as long as the tensor"""
        tensor.data = _pointer(array)
        tensor.bytes = array.nbytes
        # Of a type that is not known here: its bytes, and the shape that a header says
        shape = array.shape if opaque is None else opaque
        tensor.data_type = to_wire(array.dtype) if opaque is None else VARIANT
        tensor.ndims = len(shape)
        tensor.dims[0 : len(shape)] = shape
        # What begins anywhere is a view, too; a copy does not mind
        aligned = int(ffi.cast("uintptr_t", tensor.data)) % _ALIGN == 0
        return None if opaque is not None or (array.flags.c_contiguous and aligned) else \
            _set_strides(tensor, array)

    def offer_generation(self, group: str, arrays: Mapping[str, Any], step: int) -> None:
        """Let peers get a dict of arrays in place of the former one of ``group``.

        All become visible in one moment, in which the former ones cease to be: ``peer.generation()``
        has all of the one or all of the other. They are copied, unless they are arrays of
        ``empty()``: those are offered as they are, and must not be written to until
        ``wait_generation()`` has returned after the next generation.
        """
        names = list(arrays)
        values = [_as_array(arrays[name], self) for name in names]
        tensors = ffi.new("struct rdmatensor_tensor[]", len(names))
        # pylint: disable-next=unused-variable # they live as long as the call
        strides = [self._describe(tensor, array) for tensor, array in zip(tensors, values)]
        pointers, text = _pointers(names)
        encoded = _encoded(group)
        self._live()
        with self._setting[hash(group) % len(self._setting)]:
            handle = self._live()
            self._forget_replaced(handle, group)
            kept = _Kept([array for array in values if self._is_own(array)])
            # Before: what is offered as it is stays, also if a signal's handler raises
            with self._lock:
                self._generations.setdefault(group, []).append(kept)
            error = _end_of(self, lambda _text=text: lib.rdmatensor_offer_generation(
                handle.pointer, encoded, step, ffi.cast("const char *const *", pointers),
                tensors, len(names)), f"offer: {group!r}")
            # Else it may be visible: the next one, or the withdrawal, ends what is kept
            if error is not None:
                self._forget(group, [kept])
                raise error
            kept.visible = True

    def _forget(self, group: str, gone: list["_Kept"]) -> None:
        with self._lock:
            self._generations[group] = [kept for kept in self._generations.get(group, [])
                                        if kept not in gone]

    def _replaced(self, group: str) -> list["_Kept"]:
        """All before the last one that has become visible"""
        with self._lock:
            kept = list(self._generations.get(group, []))
        visible = [i for i, one in enumerate(kept) if one.visible]
        return kept[:visible[-1]] if visible else []

    def _forget_replaced(self, handle: _Handle, group: str) -> None:
        """Arrays of former generations, if nobody reads them any more"""
        replaced = self._replaced(group)
        if not any(one.arrays for one in replaced):
            self._forget(group, replaced)
            return
        former = lib.rdmatensor_node_until(1)
        try:
            err = lib.rdmatensor_wait_generation(handle.pointer, _encoded(group))
        finally:
            lib.rdmatensor_node_until(former)
        if not err:
            self._forget(group, replaced)

    def wait_generation(self, group: str) -> None:
        """Until peers read nothing of what the group's newest generation has replaced.

        TimeoutError: one still does.
        """
        handle = self._live()
        replaced = self._replaced(group)
        _until_it_ends(self, lambda: lib.rdmatensor_wait_generation(
            handle.pointer, _encoded(group)), f"wait: {group!r}")
        self._forget(group, replaced)

    def withdraw_generation(self, group: str) -> None:
        """End what the group offers, once the peers that are getting it have it.

        KeyError: the group offers nothing.
        """
        handle = self._live()
        with self._setting[hash(group) % len(self._setting)]:
            try:
                _until_it_ends(self, lambda: lib.rdmatensor_withdraw_generation(
                    handle.pointer, _encoded(group)), f"withdraw: {group!r}")
            except FileNotFoundError:
                raise KeyError(group) from None
            with self._lock:
                # The last one is gone; of those before it, which are replaced, one may still be read
                replaced = self._generations.pop(group, [])[:-1]
                if replaced:
                    self._generations[group] = [*replaced, _Kept([], True)]

    def _note(self, offers: dict, key: Any, array: np.ndarray, offer: Any) -> None:
        """What is offered as it is stays, whoever else forgets it"""
        absent = object()
        former = offers.get(key, absent)
        # Both: a signal's handler may raise, and nobody would know which one is offered
        unsure = self._unsure.setdefault(key, [])
        unsure.append(former)
        offers[key] = array if self._is_own(array) else None
        err = offer()
        if err and former is absent:
            del offers[key]
        elif err:
            offers[key] = former
        # Not another's, whose handler has raised meanwhile
        unsure[:] = [one for one in unsure if one is not former]
        if not unsure:
            self._unsure.pop(key, None)
        _check(err)

    def withdraw(self, name: str, *, step: int = 0) -> None:
        """End an offer, once the peers that are getting it have it. KeyError: there is none"""
        key = (name, step)
        self._live()
        with self._lock:
            handle = self._live()
            if key not in self._offered:
                raise KeyError(name)
            # Before: another thread may offer the name again as soon as it is withdrawn
            kept = self._offered.pop(key)
        try:
            self._withdraw(handle, name, step)
        except FileNotFoundError:
            raise KeyError(name) from None
        except BaseException:
            with self._lock:
                self._offered.setdefault(key, kept)
            raise
        self._unsure.pop(key, None)

    def offer_rows(self, name: str, value: Any, first: int = 0) -> None:
        """Let peers read ``value``'s rows, which are rows ``first`` and on of the table ``name``.

        They are copied, unless ``value`` is an array of ``empty_rows()``, from its beginning: peers
        read that in place, at any time, and see what is written to it.
        """
        array = _as_array(value)
        if not array.ndim or not array.nbytes:
            raise ValueError(f"an array of shape {array.shape} has no rows")
        tensor = ffi.new("struct rdmatensor_tensor *")
        tensor.data = _pointer(array)
        tensor.bytes = array.nbytes
        tensor.data_type = to_wire(array.dtype)
        tensor.ndims = array.ndim
        tensor.dims[0 : array.ndim] = array.shape
        self._live()
        with self._lock:
            handle = self._live()
            encoded = _encoded(name)
            self._note(self._rows, name, array, lambda: lib.rdmatensor_offer_rows(
                handle.pointer, encoded, tensor, first))

    def withdraw_rows(self, name: str) -> None:
        """End an offer of rows: nobody reads them any more. KeyError: there is none"""
        self._live()
        with self._lock:
            handle = self._live()
            kept = self._rows.pop(name)
            try:
                err = lib.rdmatensor_withdraw_rows(handle.pointer, _encoded(name))
            except BaseException:
                # A signal's handler: they may still be offered
                self._rows[name] = kept
                raise
            if err == -errno.ENOENT:
                raise KeyError(name)
            if err:
                self._rows[name] = kept
            _check(err)
            self._unsure.pop(name, None)

    def __setitem__(self, name: str, value: Any) -> None:
        """Offer ``value``, in place of what the name had at step 0"""
        array = _as_array(value, self)
        to_wire(array.dtype)
        self._live()
        with self._setting[hash(name) % len(self._setting)]:
            try:
                self.withdraw(name)
            except KeyError:
                pass
            self.offer(name, array)

    def __delitem__(self, name: str) -> None:
        self.withdraw(name)

    def connect(self, host: str) -> "Peer":
        """The node at "HOST[:PORT]". It is connected to when something is got from it"""
        self._live()
        return Peer(self, host)

    def get(self, name: str, *, step: int = 0, out: np.ndarray | None = None,
            slice: Any = None, wait: bool = True) -> np.ndarray:
        """One of its own offers, as Peer.get() has those of others"""
        return Peer(self, "").get(name, step=step, out=out, slice=slice, wait=wait)

    def list(self, prefix: str = "") -> list[Offered]:
        """Its own offers, as Peer.list() has them"""
        return Peer(self, "").list(prefix)

    def stats(self) -> dict[str, int]:
        """Counters of the context, by their names"""
        names = []
        while (name := lib.rdmatensor_stat_name(len(names))) != ffi.NULL:
            names.append(ffi.string(name).decode())
        counters = ffi.new("uint64_t[]", len(names))
        handle = self._live()
        rt = lib.rdmatensor_node_handle(handle.pointer)
        if rt != ffi.NULL:
            err = lib.rdmatensor_stats(rt, 0, counters, len(names))
            if err:
                raise OSError(-err, "stats: " + os.strerror(-err))
        return dict(zip(names, counters))


class Peer:
    """Another node, whose tensors can be got: ``peer["name"]``."""

    __slots__ = ("_node", "_address", "host")

    def __init__(self, node: Node, host: str):
        if "/" in host:
            raise ValueError(f"{host!r} is no HOST[:PORT]: of HOST/NAME it is connect(HOST)[NAME]")
        self._node = node
        self._address = _address(host)
        self.host = host

    @property
    def timeout(self) -> float | None:
        """Seconds that a get waits; None: for ever. It is its node's, and so that of all its peers"""
        return self._node.timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self._node.timeout = seconds

    def __getitem__(self, name: Any) -> np.ndarray:
        """``peer["w"]``, or a part of it: ``peer["w", 1024:2048, :]``"""
        if isinstance(name, tuple):
            return self.get(name[0], slice=name[1:])
        return self.get(name)

    def get(self, name: str, *, step: int = 0, out: np.ndarray | None = None,
            slice: Any = None, wait: bool = True) -> np.ndarray:
        """The tensor, in memory of the node's that peers write to: nothing is copied.

        TimeoutError: it has not come within ``timeout`` seconds, which begin with the call.
        With ``out``, an array of the caller's, it is written there instead, which costs a copy
        unless ``out`` is of ``empty_out()``. It may be a view with gaps, as ``array[:, 0:512]``: what
        lies between is left as it is.
        It is bytes that are written: the array that is returned has their type and shape, and is
        ``out`` itself only if ``out`` has these. TypeError: ``out`` is of another type.
        With ``slice``, as ``numpy.s_[1024:2048, :]``, only that part of it is sent. Of dimensions
        behind those all is taken. OSError with errno.ERANGE: the tensor ends before, which numpy
        would pass over. Without ``wait``, FileNotFoundError: it is not offered now.
        """
        parts = None if slice is None else [_Slice(slice)]
        return self._get([name], step, [out], parts, wait)[0]

    def get_many(self, names: Iterable[str] | Mapping[str, Any], *, step: int = 0,
                 wait: bool = True) -> dict[str, np.ndarray]:
        """Several tensors, all in flight at once.

        A dict has of each name the part that is wanted, as get()'s ``slice``; None: all of it.
        Without ``wait``, FileNotFoundError: one is not offered now. An OSError has ``failed``, a dict
        of the names that did not come, and of each the errno why.
        """
        _several(names)
        parts = _parts(names)
        names = list(names)
        return dict(zip(names, self._get(names, step, None, parts, wait)))

    def generation(self, names: Iterable[str] | Mapping[str, Any],
                   step: int | None = None) -> tuple[int, dict[str, np.ndarray]]:
        """All of the newest generation, and its step: never of two.

        It waits for one from ``step`` on, which is any by default. The first name says which
        generation is the newest. FileNotFoundError: it has none of one of the others. A dict has
        of each name the part that is wanted, as get_many() has it.
        """
        _several(names)
        parts = _parts(names)
        names = list(names)
        handle = self._node._live()
        tensors = ffi.new("struct rdmatensor_tensor[]", len(names))
        found = ffi.new("int64_t *", _ANY_STEP if step is None else step)
        pointers, text = _pointers(names)
        _set_parts(tensors, parts)
        handle.flush()
        try:
            _until_it_ends(self._node, lambda _text=text: self._get_generation(
                handle, ffi.cast("const char *const *", pointers), tensors, len(names), found), f"get: {self.host}")
            results = _of_parts(self._results(handle, tensors, None), tensors, parts)
            return found[0], dict(zip(names, results))
        except BaseException:
            self._give_back(handle, tensors, None)
            raise

    async def fetch_generation(self, names: Iterable[str] | Mapping[str, Any],
                               step: int | None = None) -> tuple[int, dict[str, np.ndarray]]:
        """As generation(), for asyncio: another thread waits"""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: self.generation(names, step))

    def list(self, prefix: str = "") -> list[Offered]:
        """What is offered there under names that begin with a prefix, the oldest first.

        It does not wait for more to come. PermissionError: the peer does not tell (list_mode).
        """
        handle = self._node._live()
        if "\0" in prefix:
            raise ValueError(f"{prefix!r} begins no name: it has a zero byte")
        out, nbytes = ffi.new("void **"), ffi.new("uint64_t *")
        handle.flush()
        try:
            _until_it_ends(self._node, lambda: self._get_list(
                handle, prefix.encode(errors="surrogateescape"), out, nbytes), f"list: {self.host}")
            return parse(memoryview(ffi.buffer(out[0], nbytes[0])) if nbytes[0] else memoryview(b""))
        finally:
            # Also if a signal's handler raises when it has come
            libc.free(out[0])

    async def fetch(self, name: str, *, step: int = 0, out: np.ndarray | None = None,
                    slice: Any = None) -> np.ndarray:
        """As get(), for asyncio: another thread waits.

        It goes on if the task is cancelled, and may write to ``out`` until the node's timeout is over.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            None, lambda: self.get(name, step=step, out=out, slice=slice))

    def _get(self, names: list[str], step: int, outs: list[np.ndarray | None] | None,
             parts: list[_Slice | None] | None = None,
             wait: bool = True) -> list[np.ndarray]:
        handle = self._node._live()
        step = operator.index(step)
        strides: list[Any] = []
        tensors = ffi.new("struct rdmatensor_tensor[]", len(names))
        if step and names:
            np.frombuffer(ffi.buffer(tensors), _TENSOR)["step"] = step
        for i, out in enumerate(outs or ()):
            if out is None:
                continue
            why = _unfit(out)
            if why:
                raise ValueError(f"get: {self.host}/{names[i]}: out {why}")
            tensors[i].data = _pointer(out)
            tensors[i].bytes = out.nbytes
            if not out.flags.c_contiguous:
                dropped = parts[i].dropped if parts and parts[i] else ()
                strides.append(_set_strides(tensors[i], out, dropped))
                tensors[i].bytes = _span(out)
                tensors[i].data_type = to_wire(out.dtype)
        for tensor in () if wait else tensors:
            tensor.flags = _NOWAIT
        _set_parts(tensors, parts)
        try:
            self._run(handle, names, tensors)
            return _of_parts(self._results(handle, tensors, outs, parts), tensors, parts)
        except BaseException:
            self._give_back(handle, tensors, outs)
            raise

    def _run(self, handle: _Handle, names: list[str], tensors) -> None:
        """All of them, however many signals come: what has come by then stays"""
        until = _Until(self._node, f"get: {self.host}")
        handle.flush()
        left: Any = range(len(names))
        while left:
            some, asked = tensors, names
            if len(left) < len(names):
                some = ffi.new("struct rdmatensor_tensor[]", [tensors[i] for i in left])
                asked = [names[i] for i in left]
            errors = ffi.new("int[]", len(left))
            try:
                err, said = until.run(self._asking(handle, asked, some, errors))
            finally:
                # Also when it is left by what a signal's handler raises, or at the end of its time
                if some is not tensors:
                    _structs(tensors)[left] = _structs(some)
            if not err:
                return
            if err != -errno.EINTR:
                raise _with_failed(OSError(-err, said), {
                    names[i]: errno.ETIMEDOUT if number == -errno.EINTR else -number
                    for i, number in zip(left, errors) if number})
            left = [i for i, number in zip(left, errors) if number]

    def _asking(self, handle: _Handle, names: list[str], tensors, errors) -> Any:
        pointers, text = _pointers(names)
        # What the names lie in lives as long as what asks for them
        return lambda _text=text: self._get_each(
            handle, ffi.cast("const char *const *", pointers), tensors, len(names), errors)

    # The library's calls
    def _get_each(self, handle: _Handle, *args: Any) -> int:
        return lib.rdmatensor_get_each(handle.pointer, self._address, *args)

    def _get_generation(self, handle: _Handle, *args: Any) -> int:
        return lib.rdmatensor_get_generation(handle.pointer, self._address, *args)

    def _get_list(self, handle: _Handle, *args: Any) -> int:
        return lib.rdmatensor_list(handle.pointer, self._address, *args)

    @staticmethod
    def _give_back(handle: _Handle, tensors, outs) -> None:
        """What has come all the same is nobody's"""
        if not len(tensors):
            return
        data = np.frombuffer(ffi.buffer(tensors), _TENSOR)["data"].copy()
        for i, out in enumerate(outs or ()):
            if out is not None:
                data[i] = 0
        # All together: a signal's handler may raise here, too
        handle.idle.extend(data[data != 0].tolist())
        handle.flush()

    @staticmethod
    def _results(handle, tensors, outs: list[np.ndarray | None] | None,
                 parts: list[_Slice | None] | None = None) -> list[np.ndarray]:
        if not len(tensors):
            return []
        read = np.frombuffer(ffi.buffer(tensors), _TENSOR)
        words = memoryview(ffi.buffer(tensors)).cast("Q")
        results: list[np.ndarray] = []
        for at, form, address, nbytes, out in zip(
                itertools.count(0, _WORDS), map(_form_of, read["look"].tolist()),
                read["data"].tolist(), read["bytes"].tolist(), outs or itertools.repeat(None)):
            if form.nbytes != nbytes:
                # Opaque: bytes, whatever its shape
                form = _Form(np.dtype("u1"), (nbytes,))
            if out is not None:
                part = parts[len(results)] if parts else None
                array = _filled(out, nbytes, form, part.dropped if part else ())
            elif address:
                # _view(), whose call would take a tenth of this
                if form.memory_at is None:
                    form.memory_at = form.memory_type(False).from_address
                memory = form.memory_at(address)
                memory.address = address
                array = _ndarray(form.shape, form.dtype, memory)
                # The array's from here on, in one go: a signal's handler runs before or after. With
                # Python 3.9 also in between: then it is lost, and not given back twice
                words[at], memory.handle = 0, handle
            else:
                array = np.empty(form.shape, form.dtype)
            results.append(array)
        return results

    def __repr__(self) -> str:
        return f"<rdmatensor.Peer {self.host}>"


_default: Node | None = None
_default_lock = threading.RLock()


def default_node() -> Node:
    """A node of this process that only gets"""
    global _default
    with _default_lock:
        if _default is None or _default._handle is None or _default._handle.forked:
            _default = Node()
        return _default


def connect(host: str) -> Peer:
    """The node at "HOST[:PORT]", by a node of this process that only gets.

    All of its peers have one ``timeout``, of 10 seconds at first.
    """
    return default_node().connect(host)


def offer_all(node: Node, tensors: Mapping[str, Any]) -> None:
    """Offer each of a dict"""
    for name, value in tensors.items():
        node.offer(name, value)
