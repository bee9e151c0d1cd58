# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tables whose rows are partitioned over nodes, indexed as an array is."""

from __future__ import annotations

import errno
from typing import Any, Sequence

import numpy as np

from ._ffi import ffi, lib
from ._node import (Node, _address, _encoded, _form, _Handle, _pointer, _view, default_node,
                    _until_it_ends)


class DistTensor:
    """Rows of several nodes as one array of two dimensions: ``t[ids]``.

    ``owners`` are the nodes that offer the rows, by Node.offer_rows(): "HOST[:PORT]" each, or ""
    for ``node`` itself. Rows of ``cached``, a range, are read once, now, and then come from this
    process's memory. ``order`` is an array that turns ids into row numbers: ids are its indices.

    ::

        t = rt.DistTensor("features", ["host1", "host2"])
        batch = t[ids]                          # numpy; one RDMA READ a row, or fewer

    Threads may share it. If an owner has gone, a get waits within the node's timeout until it is
    there again, with the same rows.
    """

    def __init__(self, name: str, owners: Sequence[str], *, node: Node | None = None,
                 cached: range = range(0), order: Any = None):
        if isinstance(owners, str):
            raise TypeError(f"owners is a list of addresses, and not {owners!r}")
        if cached.step != 1:
            raise ValueError(f"cached is a range without a step, and not {cached!r}")
        self.name = name
        self._node = node if node is not None else default_node()
        self._table = 0
        self._handle: _Handle | None = self._node._live()
        names = [ffi.new("char[]", _address(owner)) for owner in owners]
        out = ffi.new("struct rdmatensor_node_table **")
        options = ffi.new("struct rdmatensor_node_table_options *")
        options.cache_first, options.cache_end = cached.start, max(cached.start, cached.stop)
        if order is not None:
            order = _ids(order).reshape(-1)
            options.order = ffi.cast("uint64_t *", _pointer(order))
            options.order_nr = order.size
        try:
            _until_it_ends(self._node, lambda: lib.rdmatensor_node_table_open(
                self._handle.pointer, _encoded(name), ffi.new("char *[]", names), len(names),
                options, out), f"table {name!r}")
        finally:
            # Also if a signal's handler raises when it is open
            if out[0] != ffi.NULL:
                self._table = int(ffi.cast("uintptr_t", out[0]))
                self._handle.tables.add(self._table)
        shape = ffi.new("struct rdmatensor_tensor *")
        lib.rdmatensor_node_table_shape(out[0], shape)
        self._type, self._row_bytes = shape.data_type, shape.bytes
        #: Rows, or ids of an order, and elements of a row
        self.shape: tuple[int, int] = (shape.dims[0], shape.dims[1])

    @property
    def dtype(self) -> np.dtype:
        """Of its elements"""
        return _form(self._type, ()).dtype

    @property
    def ndim(self) -> int:
        """Always 2"""
        return 2

    def size(self, dim: int) -> int:
        """One of ``shape``, as torch has it"""
        return self.shape[dim]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Any) -> np.ndarray:
        """Rows, in the order of ``ids``: an array of integers of any shape, a slice, or one"""
        return self.gather(ids)

    def gather(self, ids: Any, out: np.ndarray | None = None) -> np.ndarray:
        """As ``t[ids]``; with ``out``, an array of the caller's, it is written there by a copy"""
        if isinstance(ids, slice):
            ids = np.arange(*ids.indices(len(self)))
        if isinstance(ids, tuple):
            raise TypeError("ids are of rows: index what comes for its columns")
        ids = _ids(ids, len(self))
        handle = self._live()
        shape = (*ids.shape, self.shape[1])
        nbytes = ids.size * self._row_bytes
        rows = ffi.new("struct rdmatensor_tensor *")
        if out is not None:
            if not out.flags.c_contiguous or not out.flags.writeable or \
                    out.shape != shape or out.dtype != self.dtype:
                raise ValueError(f"out has to be writeable, contiguous, of shape {shape} and "
                                 f"dtype {self.dtype}, and is of {out.shape} and {out.dtype}")
            rows.data, rows.bytes = _pointer(out), out.nbytes
        if not nbytes:
            return out if out is not None else np.empty(shape, self.dtype)
        handle.flush()
        given = ffi.cast("uint64_t *", _pointer(ids))
        try:
            try:
                _until_it_ends(self._node, lambda: lib.rdmatensor_get_rows(
                    self._pointer(), given, ids.size, rows), f"get rows: {self.name!r}")
            except OSError as error:
                if error.errno == errno.ERANGE:
                    raise IndexError(error.strerror) from None
                raise
            if out is not None:
                return out
            array = _view(int(ffi.cast("uintptr_t", rows.data)), _form(self._type, shape))
            # The array's from here on, as in Peer._results()
            rows.data, array.base.handle = ffi.NULL, handle
            return array
        finally:
            # What has come when a signal's handler raised is nobody's
            if out is None and rows.data != ffi.NULL:
                handle.give_back(int(ffi.cast("uintptr_t", rows.data)), nbytes)

    def _pointer(self) -> Any:
        """Each time: a signal's handler may close it"""
        self._live()
        return ffi.cast("struct rdmatensor_node_table *", self._table)

    def _live(self) -> _Handle:
        handle = self._handle
        if handle is None:
            raise ValueError(f"the table {self.name!r} is closed")
        if handle.forked:
            raise RuntimeError("the table is another process's: open it after fork()")
        return handle

    def close(self) -> None:
        """End its use. No other thread may be in a call with it"""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close_table(self._table)

    def __enter__(self) -> "DistTensor":
        return self

    def __exit__(self, *_exc: Any) -> None:
        self.close()

    def __del__(self):
        # Not if its arguments were refused
        if hasattr(self, "_handle"):
            self.close()

    def __repr__(self) -> str:
        return f"<rdmatensor.DistTensor {self.name} {self.shape} {self.dtype}>"


def _ids(ids: Any, rows: int | None = None) -> np.ndarray:
    """As the library takes them: 64 bits each, none negative. Of the table's end, -1 is the last"""
    if not isinstance(ids, np.ndarray) and hasattr(ids, "__dlpack__"):
        ids = np.from_dlpack(ids)
    array = np.asarray(ids, order="C")
    if not array.size:
        return array.astype("u8")
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids are integers, and not {array.dtype}: of a mask, numpy.flatnonzero()")
    if array.dtype.kind == "i" and array.min() < 0:
        if rows is None:
            raise ValueError("an order has no negative rows")
        array = array.astype("i8")
        array[array < 0] += rows
        if array.min() < 0:
            raise IndexError(f"id {int(array.min()) - rows} is none of a table of {rows} rows")
    # Without a copy where the bytes are the same already
    same = array.dtype.isnative and array.dtype.itemsize == 8
    return array.view("u8") if same else array.astype("u8")
