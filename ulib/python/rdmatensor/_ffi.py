# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""librdmatensor's short way (<rdmatensor/node.h>), as cffi sees it.

cffi's ABI mode needs no compiler where this is installed, and gives the GIL
back around each call. Its price, some microseconds a call, does not matter
here: what moves many tensors is one call.
"""

import os

from cffi import FFI

DIMS_MAX = 16

# Not the library's view of it: an allocator that was loaded before all others counts
_c = FFI()
_c.cdef("void free(void *memory);")
libc = _c.dlopen(None)

ffi = FFI()
ffi.cdef(
    """
    struct rdmatensor;
    struct rdmatensor_node;
    struct rdmatensor_range {
        uint64_t start;
        uint64_t length;
    };
    struct rdmatensor_stride {
        uint64_t bytes;
        uint64_t most;
    };
    struct rdmatensor_tensor {
        void *data;
        uint64_t bytes;
        int64_t step;
        uint32_t data_type;
        uint32_t ndims;
        uint64_t dims[16];
        union {
            const struct rdmatensor_range *slice;
            uint64_t slice_room;
        };
        uint64_t slice_ndims;
        uint64_t flags;
        union {
            const struct rdmatensor_stride *strides;
            uint64_t strides_room;
        };
    };

    int rdmatensor_node_open(struct rdmatensor_node **out, const char *listen);
    void rdmatensor_node_close(struct rdmatensor_node *node);
    const char *rdmatensor_node_error(void);
    void rdmatensor_node_timeout(struct rdmatensor_node *node, int64_t ms);
    uint64_t rdmatensor_node_until(uint64_t deadline_ns);
    struct rdmatensor *rdmatensor_node_handle(struct rdmatensor_node *node);
    unsigned int rdmatensor_node_port(struct rdmatensor_node *node);
    void *rdmatensor_node_alloc(struct rdmatensor_node *node, uint64_t bytes);
    int rdmatensor_node_free_many(struct rdmatensor_node *node, void *const *data,
                                  unsigned int nr);
    int rdmatensor_offer(struct rdmatensor_node *node, const char *name,
                         const struct rdmatensor_tensor *tensor);
    int rdmatensor_withdraw_offer(struct rdmatensor_node *node, const char *name,
                                  int64_t step);
    int rdmatensor_get_each(struct rdmatensor_node *node, const char *peer,
                            const char *const *names,
                            struct rdmatensor_tensor *tensors, unsigned int nr, int *errors);

    int rdmatensor_offer_generation(struct rdmatensor_node *node, const char *group,
                                    int64_t step, const char *const *names,
                                    const struct rdmatensor_tensor *tensors,
                                    unsigned int nr);
    int rdmatensor_wait_generation(struct rdmatensor_node *node, const char *group);
    int rdmatensor_withdraw_generation(struct rdmatensor_node *node, const char *group);
    int rdmatensor_get_generation(struct rdmatensor_node *node, const char *peer,
                                  const char *const *names,
                                  struct rdmatensor_tensor *tensors, unsigned int nr,
                                  int64_t *step);
    int rdmatensor_list(struct rdmatensor_node *node, const char *peer, const char *prefix,
                        void **out, uint64_t *bytes);
    struct rdmatensor_node_table;
    struct rdmatensor_node_table_options {
        uint64_t cache_first;
        uint64_t cache_end;
        const uint64_t *order;
        uint64_t order_nr;
        uint64_t __reserved[4];
    };

    void *rdmatensor_node_alloc_out(struct rdmatensor_node *node, uint64_t bytes);
    void *rdmatensor_node_alloc_rows(struct rdmatensor_node *node, uint64_t bytes);
    int rdmatensor_offer_rows(struct rdmatensor_node *node, const char *name,
                              const struct rdmatensor_tensor *rows, uint64_t first);
    int rdmatensor_withdraw_rows(struct rdmatensor_node *node, const char *name);
    int rdmatensor_node_table_open(struct rdmatensor_node *node, const char *name,
                                   const char *const *owners, unsigned int nr,
                                   const struct rdmatensor_node_table_options *options,
                                   struct rdmatensor_node_table **out);
    void rdmatensor_node_table_shape(const struct rdmatensor_node_table *table,
                                     struct rdmatensor_tensor *shape);
    int rdmatensor_get_rows(struct rdmatensor_node_table *table, const uint64_t *ids,
                            uint64_t nr, struct rdmatensor_tensor *rows);
    void rdmatensor_node_table_close(struct rdmatensor_node_table *table);

    struct rdmatensor_cluster;
    struct rdmatensor_cluster_store {
        int (*set)(void *arg, const char *key, const char *value);
        int (*get)(void *arg, const char *key, char *value, size_t room);
        void *arg;
    };
    struct rdmatensor_cluster_progress {
        uint32_t stage;
        uint32_t done;
        uint32_t total;
        uint32_t failed;
    };
    struct rdmatensor_cluster_options {
        uint32_t source;
        uint32_t flags;
        uint32_t rank;
        uint32_t size;
        int64_t timeout_ms;
        uint32_t connects;
        uint32_t __pad;
        const char *listen;
        const char *job;
        const struct rdmatensor_cluster_store *store;
        void (*progress)(void *arg, const struct rdmatensor_cluster_progress *progress);
        void *progress_arg;
    };

    int rdmatensor_cluster_open_sized(struct rdmatensor_cluster **out,
                                      const struct rdmatensor_cluster_options *options,
                                      size_t size);
    int rdmatensor_cluster_leave(struct rdmatensor_cluster *cluster);
    void rdmatensor_cluster_close(struct rdmatensor_cluster *cluster);
    struct rdmatensor_node *rdmatensor_cluster_node(struct rdmatensor_cluster *cluster);
    unsigned int rdmatensor_cluster_rank(struct rdmatensor_cluster *cluster);
    unsigned int rdmatensor_cluster_size(struct rdmatensor_cluster *cluster);
    const char *rdmatensor_cluster_source_name(struct rdmatensor_cluster *cluster);
    int rdmatensor_cluster_name(struct rdmatensor_cluster *cluster, unsigned int rank,
                                char *text, size_t text_len);
    int rdmatensor_cluster_find(struct rdmatensor_cluster *cluster, const char *name,
                                unsigned int *rank);
    int rdmatensor_cluster_get_each(struct rdmatensor_cluster *cluster, unsigned int rank,
                                    const char *const *names, struct rdmatensor_tensor *tensors,
                                    unsigned int nr, int *errors);
    int rdmatensor_cluster_get_generation(struct rdmatensor_cluster *cluster, unsigned int rank,
                                          const char *const *names,
                                          struct rdmatensor_tensor *tensors, unsigned int nr,
                                          int64_t *step);
    int rdmatensor_cluster_list(struct rdmatensor_cluster *cluster, unsigned int rank,
                                const char *prefix, void **out, uint64_t *bytes);
    int rdmatensor_cluster_address(struct rdmatensor_cluster *cluster, unsigned int rank,
                                   char *text, size_t text_len);
    int rdmatensor_cluster_connect(struct rdmatensor_cluster *cluster,
                                   const unsigned int *ranks, unsigned int nr);
    int rdmatensor_cluster_barrier(struct rdmatensor_cluster *cluster);
    int rdmatensor_cluster_check(struct rdmatensor_cluster *cluster, int *errors, unsigned int size);
    char *rdmatensor_cluster_matrix(struct rdmatensor_cluster *cluster, const int *errors,
                                    unsigned int size);
    int rdmatensor_cluster_refresh(struct rdmatensor_cluster *cluster);

    const char *rdmatensor_version(void);
    void rdmatensor_node_interruptible(struct rdmatensor_node *node, int on);
    int rdmatensor_stats(struct rdmatensor *rt, uint32_t channel,
                         uint64_t *counters, unsigned int nr);
    const char *rdmatensor_stat_name(unsigned int stat);
    size_t rdmatensor_data_type_size(uint32_t data_type);
    const char *rdmatensor_data_type_name(uint32_t data_type);
    """
)

_name = os.environ.get("RDMATENSOR_LIBRARY") or "librdmatensor.so.1"
try:
    lib = ffi.dlopen(_name)
except OSError as error:
    raise ImportError(
        f"rdmatensor: the library {_name} cannot be loaded: `make install` it, or set "
        "RDMATENSOR_LIBRARY to its file (build/ulib/lib/librdmatensor.so.1 of a tree that is "
        "built)"
    ) from error


def _find_all() -> None:
    """Look up every function, and the types that finalizers use.

    cffi does so at the first use, with a lock of its own. The collector may run meanwhile, and in it
    the finalizer of an array, which would wait for that lock in the thread that has it.
    """
    try:
        for function in dir(lib):
            getattr(lib, function)
    except AttributeError as missing:
        raise ImportError(
            f"rdmatensor: the library {_name} is older than this module: {missing}: install both of "
            "the same version"
        ) from missing
    for function in dir(libc):
        getattr(libc, function)
    for kind in ("uintptr_t[]", "void **", "struct rdmatensor_node_table *"):
        ffi.typeof(kind)


_find_all()
