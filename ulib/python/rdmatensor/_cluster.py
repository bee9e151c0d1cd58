# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ranks of a job that find each other, as <rdmatensor/cluster.h> has it."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ._ffi import ffi, lib, libc
from ._node import Node, Peer, _check, _Handle, _handles, _said, _seconds, _until_it_ends

_SOURCES = {None: 0, "pmix": 1, "tf_config": 2, "torchrun": 3, "hosts": 4, "given": 5}
_STAGES = ("connecting", "checking", "gathering")
#: RDMATENSOR_CLUSTER_QUIET, RDMATENSOR_CLUSTER_INTERRUPTIBLE
_QUIET, _INTERRUPTIBLE = 1, 2
_ADDRESS_MAX = 288


class _Store:
    """Any object with torch's store's set(), get() and check(), as the library sees it"""

    def __init__(self, store: Any):
        self._store = store
        # As long as the library may call them
        self._set = ffi.callback("int(void *, const char *, const char *)", self.set,
                                 error=-errno.EIO, onerror=self.failed)
        self._get = ffi.callback("int(void *, const char *, char *, size_t)", self.get,
                                 error=-errno.EIO, onerror=self.failed)
        self.pointer = ffi.new("struct rdmatensor_cluster_store *")
        self.pointer.set, self.pointer.get = self._set, self._get
        self.error: Exception | None = None
        self.interrupt: BaseException | None = None

    def set(self, _arg: Any, key: Any, value: Any) -> int:
        key = ffi.string(key).decode()
        # Nothing in place of one that is taken away: a get() of torch's after a check() that has seen it
        # would wait for another one, and all other calls with it
        self._store.set(key, ffi.string(value).decode() if value != ffi.NULL else "")
        return 0

    def get(self, _arg: Any, key: Any, value: Any, room: int) -> int:
        key = ffi.string(key).decode()
        # A get() of torch's waits until there is something
        if not self._store.check([key]):
            return -errno.ENOENT
        content = self._store.get(key)
        if isinstance(content, str):
            content = content.encode()
        if not content:
            return -errno.ENOENT
        if len(content) >= room:
            return -errno.EMSGSIZE
        ffi.memmove(value, content + b"\0", len(content) + 1)
        return 0

    def failed(self, _kind: Any, error: BaseException, _traceback: Any) -> int:
        """For the exception of the call that it fails; what is no error, as Ctrl-C, ends that at once"""
        if isinstance(error, Exception):
            self.error = error
            return -errno.EIO
        self.interrupt = error
        return -errno.ECANCELED


def _torch_store(rank: int, size: int, timeout: float | None) -> Any:
    """torch's, at MASTER_ADDR and MASTER_PORT: torchrun's agent has it, or rank 0; None: no torch"""
    try:
        from torch import distributed  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    # Whoever has the process group, or torchrun, has made it
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    master = rank == 0 and not agent and not distributed.is_initialized()
    # As torch makes its own: rank 0's process may have several, which share the port
    options: dict[str, Any] = {"wait_for_workers": False, "multi_tenant": True}
    if timeout is not None:
        from datetime import timedelta  # pylint: disable=import-outside-toplevel
        options["timeout"] = timedelta(seconds=timeout)
    return distributed.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size,
                                master, **options)


def _wants_torch(source: str | None) -> bool:
    environ = os.environ
    if source is None:
        source = environ.get("RDMATENSOR_CLUSTER") or None
    if source is None and environ.get("RDMATENSOR_HOSTS"):
        return False
    return (source in (None, "torchrun") and not environ.get("RDMATENSOR_STORE") and
            all(environ.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")))


class _ClusterHandle(_Handle):
    """The library's cluster, and its node. It lives as long as an array in the node's memory does"""

    def __init__(self, options: Any, keep: list[Any]):
        # pylint: disable=super-init-not-called
        self._begin()
        self.cluster = ffi.NULL
        #: What the library calls
        self.keep = keep
        out = ffi.new("struct rdmatensor_cluster **")
        _handles.add(self)
        try:
            _check(lib.rdmatensor_cluster_open_sized(out, options, ffi.sizeof(options[0])))
        finally:
            # Also if a signal's handler raises when it is open: the handle ends it
            if out[0] != ffi.NULL:
                self.cluster, self.pointer = out[0], lib.rdmatensor_cluster_node(out[0])

    def _end(self) -> None:
        cluster, self.cluster, self.pointer = self.cluster, ffi.NULL, ffi.NULL
        lib.rdmatensor_cluster_close(cluster)


class _Rank(Peer):
    """Another rank. What is got goes by channels by which the rank has proven that it is that one"""

    __slots__ = ("_cluster", "_rank")

    def __init__(self, cluster: "Cluster", rank: int):
        super().__init__(cluster.node, cluster.address(rank))
        self._cluster, self._rank = cluster, rank

    # Its handle is the cluster's
    def _get_each(self, handle: Any, *args: Any) -> int:
        return lib.rdmatensor_cluster_get_each(handle.cluster, self._rank, *args)

    def _get_generation(self, handle: Any, *args: Any) -> int:
        return lib.rdmatensor_cluster_get_generation(handle.cluster, self._rank, *args)

    def _get_list(self, handle: Any, *args: Any) -> int:
        return lib.rdmatensor_cluster_list(handle.cluster, self._rank, *args)

    @contextlib.contextmanager
    def _with_store(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._cluster._because(error) from error.__cause__

    def _get(self, *args: Any) -> list[np.ndarray]:
        with self._with_store():
            return super()._get(*args)

    def generation(self, names: Any, step: int | None = None) -> tuple[int, dict[str, np.ndarray]]:
        with self._with_store():
            return super().generation(names, step)

    def list(self, prefix: str = "") -> list:
        with self._with_store():
            return super().list(prefix)

    def __repr__(self) -> str:
        return f"<rdmatensor.Peer, rank {self._rank} at {self.host}>"


class Cluster:
    """This process, as a rank of a job whose others it finds.

    Who it is is said by what has started it: ``mpirun`` and ``srun --mpi=pmix`` (PMIx), torchrun,
    TF_CONFIG, or RDMATENSOR_HOSTS, a file of hosts; or by ``rank``, ``size`` and ``store``, any
    object with torch's set(), get() and check(). ``source`` names one of them, "pmix", "tf_config",
    "torchrun" or "hosts". Under torchrun, torch's own store is taken if there are torch and no
    RDMATENSOR_STORE.

    ``cluster.node`` offers, and ``cluster[rank]`` is another one's. ``timeout`` is how many seconds
    a call waits for others; None: for ever. ``progress(stage, done, total, failed)`` is called as a
    call goes on; without it there is a line on a terminal, unless ``quiet``.
    """

    def __init__(self, source: str | None = None, *, rank: int | None = None,
                 size: int | None = None, store: Any = None, listen: str | None = None,
                 job: str | None = None, timeout: float | None = 60.0, connects: int = 16,
                 progress: Callable[[str, int, int, int], Any] | None = None,
                 quiet: bool = False):
        if (rank is None) != (size is None):
            raise ValueError("rank and size are given together, or neither")
        if source not in _SOURCES or source == "given":
            raise ValueError(f"source is one of pmix, tf_config, torchrun and hosts, and not {source!r}")
        timeout = _seconds(timeout)
        self._handle: _ClusterHandle | None = None
        self._progress = progress
        self._store: _Store | None = None
        if rank is None and store is None and _wants_torch(source):
            store = _torch_store(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), timeout)
        options = ffi.new("struct rdmatensor_cluster_options *")
        keep: list[Any] = []
        options.source = _SOURCES[source] if rank is None else _SOURCES["given"]
        options.flags = _INTERRUPTIBLE | (_QUIET if quiet else 0)
        options.rank, options.size, options.connects = rank or 0, size or 0, connects
        options.timeout_ms = -1 if timeout is None else max(1, int(timeout * 1000))
        for name, text in (("listen", listen), ("job", job)):
            if text is not None:
                keep.append(ffi.new("char[]", text.encode()))
                setattr(options, name, keep[-1])
        if store is not None:
            self._store = _Store(store)
            options.store = self._store.pointer
            keep.append(self._store)
        if progress is not None:
            keep.append(ffi.callback(
                "void(void *, const struct rdmatensor_cluster_progress *)", self._tell))
            options.progress = keep[-1]
        try:
            self._handle = _ClusterHandle(options, keep)
        except OSError as error:
            raise self._because(error) from error.__cause__
        self._collective = threading.Lock()
        self.node = Node._of(self._handle, timeout)

    def _tell(self, _arg: Any, progress: Any) -> None:
        if self._progress is not None:
            self._progress(_STAGES[progress.stage], progress.done, progress.total, progress.failed)

    def _because(self, error: OSError) -> OSError:
        """With what the store has raised, if it is of that. What is no error, as KeyboardInterrupt, is raised"""
        store = self._store
        if store is None:
            return error
        if error.errno == errno.ECANCELED and store.interrupt is not None:
            interrupt, store.interrupt = store.interrupt, None
            raise interrupt
        if error.errno == errno.EIO and store.error is not None:
            error.__cause__, store.error = store.error, None
        return error

    def _live(self) -> _ClusterHandle:
        handle = self._handle
        if handle is None:
            raise ValueError("the cluster is closed")
        if handle.forked:
            raise RuntimeError("the cluster is another process's: make one after fork()")
        return handle

    def _run(self, call: Any, what: str) -> None:
        try:
            _until_it_ends(self.node, call, what)
        except OSError as error:
            raise self._because(error) from error.__cause__

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_exc: Any) -> None:
        self.close()

    def close(self) -> None:
        """Leave, and end the node with the last array that is in its memory"""
        handle, self._handle = self._handle, None
        if handle is None or handle.forked:
            return
        err = lib.rdmatensor_cluster_leave(handle.cluster)
        said = _said()
        self.node.close()
        if err:
            error = self._because(OSError(-err, said))
            raise error from error.__cause__

    def leave(self) -> None:
        """Let others know that this rank does not take part any more; its offers stay"""
        self._once(lib.rdmatensor_cluster_leave(self._live().cluster))

    @property
    def rank(self) -> int:
        """Who this is"""
        return lib.rdmatensor_cluster_rank(self._live().cluster)

    @property
    def size(self) -> int:
        """How many ranks there are"""
        return lib.rdmatensor_cluster_size(self._live().cluster)

    def __len__(self) -> int:
        return self.size

    @property
    def source(self) -> str:
        """What has told: "pmix", "tf_config", "torchrun", "hosts" or "given\""""
        return ffi.string(lib.rdmatensor_cluster_source_name(self._live().cluster)).decode()

    def name(self, rank: int) -> str:
        """What a rank is called: "ps/0" by TF_CONFIG, else its number"""
        text = ffi.new("char[]", _ADDRESS_MAX)
        _check(lib.rdmatensor_cluster_name(self._live().cluster, rank, text, len(text)))
        return ffi.string(text).decode()

    def find(self, name: str) -> int:
        """The rank that is called so. KeyError: none is"""
        if "\0" in name:
            raise KeyError(name)
        rank = ffi.new("unsigned int *")
        err = lib.rdmatensor_cluster_find(self._live().cluster, name.encode(), rank)
        if err:
            raise KeyError(_said())
        return rank[0]

    def address(self, rank: int) -> str:
        """Where a rank is, which is waited for if it has not said so yet. Who answers there is not tried"""
        text = ffi.new("char[]", _ADDRESS_MAX)
        handle = self._live()
        self._run(lambda: lib.rdmatensor_cluster_address(handle.cluster, rank, text, len(text)),
                  f"cluster: rank {rank}")
        return ffi.string(text).decode()

    def __getitem__(self, rank: int | str) -> Peer:
        """A rank, by its number or name: what it offers can be got.

        A worker that answers at its address, and is not that rank of this job, is not asked for
        anything: OSError with errno.EADDRINUSE when the timeout is over. FileNotFoundError also says
        that the rank has left.
        """
        if isinstance(rank, str):
            rank = self.find(rank)
        if rank < 0 or rank >= self.size:
            raise IndexError(f"there is no rank {rank}: ranks are 0 to {self.size - 1}")
        return Peer(self.node, "") if rank == self.rank else _Rank(self, rank)

    def connect(self, ranks: Iterable[int] | None = None) -> None:
        """Wait for ranks, by default all, and connect to them"""
        wanted = None if ranks is None else list(ranks)
        array = ffi.NULL if wanted is None else ffi.new("unsigned int[]", wanted)
        handle = self._live()
        self._run(lambda: lib.rdmatensor_cluster_connect(handle.cluster, array, len(wanted or ())),
                  "cluster: connect")

    def barrier(self) -> None:
        """Wait until all ranks have come here. Collective; a signal ends it, and it is over then"""
        handle = self._live()
        with self._collective:
            self._once(lib.rdmatensor_cluster_barrier(handle.cluster))

    def check(self) -> "Check":
        """Try each pair of ranks. Collective: all ranks call it; a signal ends it, and it is over then"""
        handle = self._live()
        with self._collective:
            size = self.size
            errors = np.zeros((size, size), "i4")
            pointer = ffi.cast("int *", errors.ctypes.data)
            bad = lib.rdmatensor_cluster_check(handle.cluster, pointer, size)
            if bad < 0:
                self._once(bad)
            # Of a pair: it is in the matrix
            if self._store is not None:
                self._store.error = None
            text = lib.rdmatensor_cluster_matrix(handle.cluster, pointer, size)
            if text == ffi.NULL:
                raise MemoryError(_said())
            try:
                return Check(-errors, ffi.string(text).decode())
            finally:
                libc.free(text)

    def _once(self, err: int) -> None:
        try:
            _check(err)
        except OSError as error:
            raise self._because(error) from error.__cause__

    def refresh(self) -> int:
        """Ask again who takes part, where that can change: a file of hosts. The number of ranks.

        Not while a check or a barrier goes on, which are of those that there were: OSError with
        errno.EBUSY.
        """
        handle = self._live()
        if not self._collective.acquire(blocking=False):
            raise OSError(errno.EBUSY, "cluster: refresh: a check or a barrier goes on: refresh "
                                       "when it has ended")
        try:
            self._once(lib.rdmatensor_cluster_refresh(handle.cluster))
            return self.size
        finally:
            self._collective.release()

    def __repr__(self) -> str:
        if self._handle is None:
            return "<rdmatensor.Cluster, closed>"
        return f"<rdmatensor.Cluster rank {self.rank} of {self.size} by {self.source}>"


class Check:
    """What a check has found: ``check.errors[i, j]`` is the errno with which rank i has failed to get
    from rank j; 0: it has; errno.ENODATA: rank i has not told. It is true if all pairs work, and prints
    as a matrix of those that do not."""

    def __init__(self, errors: np.ndarray, text: str):
        self.errors = errors
        self._text = text

    def __bool__(self) -> bool:
        return not self.errors.any()

    def __str__(self) -> str:
        return self._text.rstrip("\n")
