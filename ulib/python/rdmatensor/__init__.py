# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tensors between machines by name, over RDMA.

Two lines on each side::

    import rdmatensor as rt
    node = rt.Node(listen=":18521"); node["w"] = array

    import rdmatensor as rt
    array = rt.connect("host")["w"]

Arrays that are got are views of memory that the peer wrote to: nothing is copied. They are numpy
arrays, so torch.from_numpy() and every library with DLPack take them as they are; and whatever has
DLPack, or the buffer protocol with numbers in it, can be offered.

Rows that are partitioned over nodes are one array::

    node.offer_rows("features", array, first=0)
    rt.DistTensor("features", ["host1", "host2"])[ids]

Ranks of a job find each other, as mpirun, srun, torchrun or TF_CONFIG has started them::

    cluster = rt.Cluster()
    cluster.node["w"] = array
    array = cluster[0]["w"]

Errors are OSErrors with their errno, a cause and a remedy: TimeoutError, ConnectionRefusedError,
and others.
"""

from ._cluster import Check, Cluster
from ._ffi import ffi as _ffi
from ._ffi import lib as _lib
from ._list import Offered
from ._model import INDEX, load, serve
from ._node import Node, Peer, connect
from ._table import DistTensor

__all__ = ["INDEX", "Check", "Cluster", "DistTensor", "Node", "Offered", "Peer", "connect", "load", "serve"]
__version__ = _ffi.string(_lib.rdmatensor_version()).decode()
