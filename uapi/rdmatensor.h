/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The ABI of /dev/rdmatensor.
 *
 * One open file is one context: one worker, with a name, its own channels,
 * and tables. Everything it made ends with the last close of the file, but for
 * what its domain has: pools, and what was published until it is withdrawn. The
 * domain is the context's own, and ends with it, unless other contexts have
 * joined it, or a descriptor of it is open (RDMATENSOR_DOMAIN_CREATE).
 * The file is not shared by fork() in any useful way: a child inherits the
 * context, not a copy of it.
 *
 * Errno contract of all ioctls:
 *  -ENOTTY:      the ioctl number is unknown to this kernel
 *  -E2BIG:       the struct is longer than this kernel knows and its unknown
 *                tail is not zero
 *  -EOPNOTSUPP:  the number is known, a feature that was asked for is not there
 *  -EINVAL:      a field is out of its range, a reserved one is not zero, or
 *                the struct is shorter than its first version
 *  -ENOENT:      an id names nothing
 *  -EFAULT:      a pointer does not name readable or writable memory
 *  -EBUSY:       the object is in use
 *  -ENODEV:      the RDMA device has gone; only close() remains
 *  -ENOTCONN:    START has not been done, or the channel is not up
 *  -EISCONN:     START has been done already
 *
 * Nothing is changed by a call that returns an error, unless its text says so.
 */
#ifndef _UAPI_RDMATENSOR_H
#define _UAPI_RDMATENSOR_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <stdint.h>
#endif

/** RDMATENSOR_ABI_VERSION: raised when a struct or an operation is added */
#define RDMATENSOR_ABI_VERSION 1

#define RDMATENSOR_DEVICE_PATH "/dev/rdmatensor"

/* Longest tensor name, in bytes, without a terminating zero (TensorFlow verbs' kNameCapacity) */
#define RDMATENSOR_NAME_MAX 512
/* Longest worker name, in bytes, with its terminating zero */
#define RDMATENSOR_WORKER_MAX 64
/* Longest shape */
#define RDMATENSOR_DIMS_MAX 16
/* Longest text in an entry of the ring, in bytes, without a terminating zero */
#define RDMATENSOR_TEXT_MAX 128
/* Longest text of a status, in bytes: RDMATENSOR_STATUS_TEXT has what an entry has no room for */
#define RDMATENSOR_STATUS_TEXT_MAX 1024
/* Texts that a context keeps for RDMATENSOR_STATUS_TEXT: the last ones */
#define RDMATENSOR_STATUS_TEXTS 64
/* Lanes of one channel, at most */
#define RDMATENSOR_LANES_MAX 8
/* Regions of a pool start at multiples of this */
#define RDMATENSOR_REGION_ALIGN 64
/* Longest array of operations that one SUBMIT takes */
#define RDMATENSOR_SUBMIT_MAX 1024
/* Fetches with RDMATENSOR_OP_SHARE of one context that wait or are not released, at most */
#define RDMATENSOR_SHARES_MAX 65536
/* Generations of a domain that are not over, in all */
#define RDMATENSOR_GENERATIONS_MAX 1024
/* The channel that leads to the context itself */
#define RDMATENSOR_CHANNEL_SELF 0

/*
 * An element of a shape. 64 bits as the C library spells them: a program passes on what it is told,
 * and __u64 is another type where that is unsigned long
 */
#ifdef __KERNEL__
#define __rdmatensor_dim __aligned_u64
#else
#define __rdmatensor_dim uint64_t
#endif

#define RDMATENSOR_IOC_TYPE 0xD7

enum {
	RDMATENSOR_CMD_BASE = 0x80,
	RDMATENSOR_CMD_QUERY = RDMATENSOR_CMD_BASE,
	RDMATENSOR_CMD_START,
	RDMATENSOR_CMD_CONFIGURE,
	RDMATENSOR_CMD_STATS,
	RDMATENSOR_CMD_POOL_CREATE,
	RDMATENSOR_CMD_POOL_DESTROY,
	RDMATENSOR_CMD_POOL_ALLOC,
	RDMATENSOR_CMD_CONNECT,
	RDMATENSOR_CMD_DISCONNECT,
	RDMATENSOR_CMD_CHANNEL_QUERY,
	RDMATENSOR_CMD_STEP_ABORT,
	RDMATENSOR_CMD_SUBMIT,
	RDMATENSOR_CMD_TABLE_EXPORT,
	RDMATENSOR_CMD_TABLE_OPEN,
	RDMATENSOR_CMD_TABLE_CLOSE,
	RDMATENSOR_CMD_STATUS_TEXT,
	RDMATENSOR_CMD_POOL_REGISTER,
	RDMATENSOR_CMD_POOL_IMPORT,
	RDMATENSOR_CMD_DOMAIN_CREATE,
	RDMATENSOR_CMD_DOMAIN_QUERY,
	RDMATENSOR_CMD_POOL_QUERY,
	RDMATENSOR_CMD_LASTING_QUERY,
	RDMATENSOR_CMD_DUMP,
};

/**
 * enum rdmatensor_data_type - element types
 *
 * The numbers are those of TensorFlow's DataType, so that its bindings need no
 * table. The three opaque types carry serialised bytes of any length; of all
 * others tensor_bytes is the product of the dims and the element's size.
 *
 * @RDMATENSOR_DT_INVALID: no type; a fetched tensor never has it
 * @RDMATENSOR_DT_FLOAT: 4 bytes, IEEE 754 single precision
 * @RDMATENSOR_DT_DOUBLE: 8 bytes, IEEE 754 double precision
 * @RDMATENSOR_DT_INT32: 4 bytes
 * @RDMATENSOR_DT_UINT8: 1 byte
 * @RDMATENSOR_DT_INT16: 2 bytes
 * @RDMATENSOR_DT_INT8: 1 byte
 * @RDMATENSOR_DT_STRING: opaque
 * @RDMATENSOR_DT_COMPLEX64: 8 bytes, two of RDMATENSOR_DT_FLOAT
 * @RDMATENSOR_DT_INT64: 8 bytes
 * @RDMATENSOR_DT_BOOL: 1 byte
 * @RDMATENSOR_DT_QINT8: 1 byte, quantised
 * @RDMATENSOR_DT_QUINT8: 1 byte, quantised
 * @RDMATENSOR_DT_QINT32: 4 bytes, quantised
 * @RDMATENSOR_DT_BFLOAT16: 2 bytes, the upper half of RDMATENSOR_DT_FLOAT
 * @RDMATENSOR_DT_QINT16: 2 bytes, quantised
 * @RDMATENSOR_DT_QUINT16: 2 bytes, quantised
 * @RDMATENSOR_DT_UINT16: 2 bytes
 * @RDMATENSOR_DT_COMPLEX128: 16 bytes, two of RDMATENSOR_DT_DOUBLE
 * @RDMATENSOR_DT_HALF: 2 bytes, IEEE 754 half precision
 * @RDMATENSOR_DT_RESOURCE: opaque
 * @RDMATENSOR_DT_VARIANT: opaque
 * @RDMATENSOR_DT_UINT32: 4 bytes
 * @RDMATENSOR_DT_UINT64: 8 bytes
 * @RDMATENSOR_DT_FLOAT8_E5M2: 1 byte
 * @RDMATENSOR_DT_FLOAT8_E4M3FN: 1 byte
 */
enum rdmatensor_data_type {
	RDMATENSOR_DT_INVALID = 0,
	RDMATENSOR_DT_FLOAT = 1,
	RDMATENSOR_DT_DOUBLE = 2,
	RDMATENSOR_DT_INT32 = 3,
	RDMATENSOR_DT_UINT8 = 4,
	RDMATENSOR_DT_INT16 = 5,
	RDMATENSOR_DT_INT8 = 6,
	RDMATENSOR_DT_STRING = 7,
	RDMATENSOR_DT_COMPLEX64 = 8,
	RDMATENSOR_DT_INT64 = 9,
	RDMATENSOR_DT_BOOL = 10,
	RDMATENSOR_DT_QINT8 = 11,
	RDMATENSOR_DT_QUINT8 = 12,
	RDMATENSOR_DT_QINT32 = 13,
	RDMATENSOR_DT_BFLOAT16 = 14,
	RDMATENSOR_DT_QINT16 = 15,
	RDMATENSOR_DT_QUINT16 = 16,
	RDMATENSOR_DT_UINT16 = 17,
	RDMATENSOR_DT_COMPLEX128 = 18,
	RDMATENSOR_DT_HALF = 19,
	RDMATENSOR_DT_RESOURCE = 20,
	RDMATENSOR_DT_VARIANT = 21,
	RDMATENSOR_DT_UINT32 = 22,
	RDMATENSOR_DT_UINT64 = 23,
	RDMATENSOR_DT_FLOAT8_E5M2 = 24,
	RDMATENSOR_DT_FLOAT8_E4M3FN = 25,
	/* private: the last one */
	RDMATENSOR_DT_MAX = 25,
};

/**
 * struct rdmatensor_query - ioctl(RDMATENSOR_QUERY)
 * @size: sizeof(struct rdmatensor_query)
 * @abi_version: out: RDMATENSOR_ABI_VERSION of the module
 * @flags: out: RDMATENSOR_QUERY_STARTED, RDMATENSOR_QUERY_DEVICE_GONE,
 *         RDMATENSOR_QUERY_VALIDATE
 * @ring_entries: out: capacity of the completion ring; 0 before START
 * @incarnation: out: random number of this context's life, told to every peer
 * @device_name: out: RDMA device, empty before START
 * @port: out: its port, from 1
 * @gid_index: out: index of the GID in the port's table
 * @gid: out: that GID, in network order
 * @listen_port: out: rdma_cm port that peers connect to; 0: not listening
 * @mtu: out: path MTU of new channels in bytes, if the peer's is not less
 * @channels: out: channels that are up
 * @pools: out: pools that exist
 * @max_segment_bytes: out: bytes that one memory region covers in the processor's pages; a
 *         region of longer pages (START's mr_page_bytes) covers more
 * @__reserved: must be 0
 */
struct rdmatensor_query {
	__u32 size;
	__u32 abi_version;
	__u32 flags;
#define RDMATENSOR_QUERY_STARTED (1 << 0)
#define RDMATENSOR_QUERY_DEVICE_GONE (1 << 1)
#define RDMATENSOR_QUERY_VALIDATE (1 << 2)
	__u32 ring_entries;
	__aligned_u64 incarnation;
	char device_name[64];
	__u32 port;
	__u32 gid_index;
	__u8 gid[16];
	__u32 listen_port;
	__u32 mtu;
	__u32 channels;
	__u32 pools;
	__aligned_u64 max_segment_bytes;
	__aligned_u64 __reserved;
};

#define RDMATENSOR_QUERY _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_QUERY)

/**
 * struct rdmatensor_start - ioctl(RDMATENSOR_START)
 * @size: sizeof(struct rdmatensor_start)
 * @flags: RDMATENSOR_START_LISTEN: accept channels from peers;
 *         RDMATENSOR_START_GID_INDEX, _RETRY_COUNT, _RNR_RETRY: the field is meant, as by
 *         its bit in @set;
 *         RDMATENSOR_START_VALIDATE: begin in data-validation mode; without it and its bit
 *         in @set: as the host's default has it;
 *         RDMATENSOR_START_DOMAIN: join the domain of @domain_fd
 * @worker: this worker's name, zero-terminated, not empty, without control characters
 * @device_name: RDMA device, or its network device, or one of its IP addresses, which
 *         is the GID then; empty: the only device with an active port
 * @port: its port, from 1; auto: its first active one
 * @gid_index: RDMA_GID_INDEX; auto: the first RoCE v2 GID with an IPv4-mapped or global
 *         address, a link-local one if there is no other; on InfiniBand index 0
 * @listen_addr: struct sockaddr_in or _in6; family 0: the chosen GID's address, on
 *         InfiniBand every IPv4 address. Port 0: any free one, see RDMATENSOR_QUERY
 * @ring_entries: entries of the completion ring, 16..1 << 20, rounded up to a power of two
 * @pkey_index: RDMA_QP_PKEY_INDEX, from 0 (InfiniBand)
 * @queue_depth: RDMA_QP_QUEUE_DEPTH: work requests of a lane's send queue, 16..16384, and
 *         five more, for probes and its end. All that arrives is accounted for, so a
 *         receive queue has a place for each that can and no more: on a channel's first
 *         lane 2 * msg_slots + 1 and one for each request that may be outstanding, on
 *         others these and 1. Requests are 256, or what keeps the first lane's receives
 *         within queue_depth. A lane for READs receives nothing
 * @timeout: RDMA_QP_TIMEOUT: local ack timeout is 4.096 us << timeout, 1..31. Soft-RoCE,
 *         which waits a quarter of what it is given, is given two more, 31 at most
 * @retry_count: RDMA_QP_RETRY_COUNT, 0..7. Soft-RoCE: 6 at most, as it would never give up
 * @rnr_retry: receiver-not-ready retries, 0..7. The accounting of receives makes 0 work
 *         too; a debug build uses it
 * @sl: RDMA_QP_SL, 0..7; auto: as the path's resolution has it: what the subnet's manager
 *         says, or on RoCE what the host maps the traffic class to; of a connection that the
 *         peer makes, what it asks for. As @traffic_class, @timeout, @retry_count and
 *         @rnr_retry it holds for what this side sends, whoever connects
 * @traffic_class: RDMA_TRAFFIC_CLASS, 0..255; auto: what the host has for the port, or what
 *         the connecting peer asks for
 * @mtu: RDMA_QP_MTU: 256, 512, 1024, 2048 or 4096, at most the port's active
 *         MTU; auto: the active MTU. A connection has the lesser of both sides', at both ends
 * @msg_slots: slots of the message buffers, a power of two, 1..1024. 1 is the
 *         stop-and-wait protocol of TensorFlow's verbs
 * @msg_slot_bytes: bytes of a slot, a power of two, 1024..65536
 * @ack_batch: consumed messages that one ack reports, 1..msg_slots; auto: half of
 *         msg_slots, at least 1
 * @lanes: queue pairs of a channel that this side connects, 1..8
 * @stripe_bytes: a tensor of more bytes that this side fetches is cut over the lanes, and once it
 *         is being sent so, it is sent to its end, whatever ends the fetch; 1..4294967294
 * @max_channels: channels at the same time, 1..4096
 * @handshake_ms: bound on the set-up of one channel, in milliseconds, 100..600000
 * @cancel_ms: bound on a peer's silence before its answer to a cancelled fetch, after
 *         which the channel is torn down, in milliseconds, 100..600000. A peer that was given
 *         room for the tensor has one more for each 4096 bytes of it. Whatever the peer
 *         sends on the channel restarts the time, up to 16 times it in all
 * @probe_ms: a channel on which nothing has happened for so long is probed by an empty
 *         write, in milliseconds, so that a peer that has stopped without a word is
 *         found out; 10..600000. From then on it is the transport's patience, about
 *         4.096 us << timeout for each of retry_count + 1 tries. A queue pair that completes
 *         nothing of what is posted to it for a tenth of that, 10 ms to 5 s, has one as
 *         well: soft-RoCE can sleep over it until something is posted
 * @max_pools: pools at the same time, and as many tensor buffers beside them (see
 *         RDMATENSOR_OP_PUBLISH), 1..65536
 * @gather_lanes: queue pairs to each owner of a table, for gathers, 1..8
 * @cq_mod: reads of a gather that are posted in one list, of which the last is
 *         signalled, 1..1024
 * @cq_poll: where completions are handled, 1: in softirq, 2: in a workqueue
 * @cause: out, also when the call fails: what failed, why, and the remedy, as
 *         a zero-terminated line; on success what was chosen and by which rule
 * @lane_bytes: bytes of content that this side, publishing, keeps posted on a lane at most,
 *         besides one write of 64 to 256 KiB, for a second after each tensor of up to 64 KiB
 *         in either direction, each failure and each CANCEL, which wait for that much; four
 *         times that otherwise;
 *         65536..67108864; auto: 131072 on soft-RoCE, 1048576 on other devices. A lane
 *         finds out within these bounds how many keep its wire busy; the rest waits where a small
 *         tensor passes it and a CANCEL takes it back. A wire that moves more than that
 *         between a completion and the next needs more
 * @mr_page_bytes: longest page of a memory region, 4096..2097152, a power of two; the
 *         processor's page if that is longer. A device that has no pages of that length gets
 *         the next shorter ones that it has. A pool or table that needs several keys of the
 *         processor's pages, and consists of aligned chunks of that length, is registered
 *         in such pages, which takes fewer keys
 * @set: RDMATENSOR_SET_* of the fields that are meant whatever their value: 0 where that is
 *         in the range, and RDMATENSOR_PARAM_AUTO where the parameter may be auto. Out: of
 *         all fields that have a value then, which is all but @sl and @traffic_class that
 *         the path decides
 * @domain_fd: with RDMATENSOR_START_DOMAIN: descriptor of a domain (RDMATENSOR_DOMAIN_CREATE),
 *         which may be closed after the call. The context has the domain's pools from the start,
 *         offers what is published there with uses 0, and takes the domain's device, if
 *         @device_name is empty, and its @max_pools, @mr_page_bytes and @mr_mode, whatever is
 *         set here; but an @mr_mode that is set to another is -EINVAL. @port, @gid_index and all
 *         else are its own
 * @mr_mode: RDMATENSOR_MR_MODE_*: what peers can write to, a decision of this side alone, and
 *         nothing that a peer has to know of. _POOL: a peer of any channel can write to all
 *         pools that were made with RDMATENSOR_POOL_PEERS_WRITE, at any time. _STRICT: a channel
 *         has a protection domain of its own, and each fetch registers its destination there,
 *         exactly its bytes; that ends before the fetch's entry is visible. It costs two work
 *         requests of lane 0's send queue for each key of a fetch; RDMATENSOR_OP_KEEP has no
 *         effect on what peers remember
 * @list_mode: RDMATENSOR_LIST_MODE_*: whether peers are told what this context offers
 *         (RDMATENSOR_OP_LIST): _ALL, or _NONE: they have to know the names, and a LIST of theirs
 *         ends with -EACCES. What was published with uses 0 is the domain's, and each of its
 *         contexts tells it by its own list_mode. It is no access control: who knows a name can
 *         fetch it, and a name may be told by other means, as by an index of names that is
 *         offered under a name that everybody knows
 * @__reserved: must be 0
 *
 * The fields from @port to @mr_page_bytes, @mr_mode and @list_mode are the parameters of
 * rdmatensor_params.h, which has their ranges, and their defaults until the host changes them. A
 * field that is not 0 is meant (@gid_index, @retry_count and @rnr_retry: if @flags or @set says
 * so); one that is 0 and not in @set takes the default. Programs whose struct ends before @set,
 * or before @lane_bytes, go on by that: they cannot choose 0 for @sl, @traffic_class and
 * @pkey_index, auto, or no validation, where the host's default is another; nor are they told
 * what was chosen for @port, @gid_index and @mtu. After success each field has the value that
 * holds; a call that fails changes nothing but @cause.
 *
 * Binds the context to a device, port and GID, makes its protection domain and
 * completion ring, and begins to listen. -ENODEV: no such device or none
 * active; -ENOTUNIQ: several are, @cause lists them; -EOPNOTSUPP: it is not coherent
 * with the processors, or reaches memory through bounce buffers; -EADDRINUSE:
 * @listen_addr; -EADDRNOTAVAIL: no RDMA device has it, or it is a loopback address; -EUSERS:
 * all max_contexts of the host are started; -EDQUOT: rdma.max of the RDMA cgroup allows the
 * protection domain's queue pair no more; -ENOMEM: of the ring,
 * which is locked memory as registered pools are (see RDMATENSOR_POOL_REGISTER), its pages the
 * memory cgroup's. What peers make the context allocate is charged to the memory cgroup
 * of who opened it. With RDMATENSOR_START_DOMAIN also -EBADF: @domain_fd is not open; -EINVAL: it
 * is no domain; -EXDEV: the domain is of another network namespace, or @device_name names
 * another device than the domain's; -ENODEV: the domain's device was removed.
 */
struct rdmatensor_start {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_START_LISTEN (1 << 0)
#define RDMATENSOR_START_GID_INDEX (1 << 1)
#define RDMATENSOR_START_RETRY_COUNT (1 << 2)
#define RDMATENSOR_START_RNR_RETRY (1 << 3)
#define RDMATENSOR_START_VALIDATE (1 << 4)
#define RDMATENSOR_START_DOMAIN (1 << 5)
#define RDMATENSOR_START_FLAGS 0x3f
	char worker[RDMATENSOR_WORKER_MAX];
	char device_name[64];
	__u32 port;
	__u32 gid_index;
	__u8 listen_addr[28];
	__u32 ring_entries;
	__u32 pkey_index;
	__u32 queue_depth;
	__u32 timeout;
	__u32 retry_count;
	__u32 rnr_retry;
	__u32 sl;
	__u32 traffic_class;
	__u32 mtu;
	__u32 msg_slots;
	__u32 msg_slot_bytes;
	__u32 ack_batch;
	__u32 lanes;
	__aligned_u64 stripe_bytes;
	__u32 max_channels;
	__u32 handshake_ms;
	__u32 cancel_ms;
	__u32 probe_ms;
	__u32 max_pools;
	__u32 gather_lanes;
	__u32 cq_mod;
	__u32 cq_poll;
	char cause[256];
	__u32 lane_bytes;
	__u32 mr_page_bytes;
	__aligned_u64 set;
#define RDMATENSOR_SET_PORT (1ULL << 0)
#define RDMATENSOR_SET_GID_INDEX (1ULL << 1)
#define RDMATENSOR_SET_PKEY_INDEX (1ULL << 2)
#define RDMATENSOR_SET_RING_ENTRIES (1ULL << 3)
#define RDMATENSOR_SET_QUEUE_DEPTH (1ULL << 4)
#define RDMATENSOR_SET_TIMEOUT (1ULL << 5)
#define RDMATENSOR_SET_RETRY_COUNT (1ULL << 6)
#define RDMATENSOR_SET_RNR_RETRY (1ULL << 7)
#define RDMATENSOR_SET_SL (1ULL << 8)
#define RDMATENSOR_SET_TRAFFIC_CLASS (1ULL << 9)
#define RDMATENSOR_SET_MTU (1ULL << 10)
#define RDMATENSOR_SET_MSG_SLOTS (1ULL << 11)
#define RDMATENSOR_SET_MSG_SLOT_BYTES (1ULL << 12)
#define RDMATENSOR_SET_ACK_BATCH (1ULL << 13)
#define RDMATENSOR_SET_LANES (1ULL << 14)
#define RDMATENSOR_SET_STRIPE_BYTES (1ULL << 15)
#define RDMATENSOR_SET_LANE_BYTES (1ULL << 16)
#define RDMATENSOR_SET_MAX_CHANNELS (1ULL << 17)
#define RDMATENSOR_SET_MAX_POOLS (1ULL << 18)
#define RDMATENSOR_SET_HANDSHAKE_MS (1ULL << 19)
#define RDMATENSOR_SET_CANCEL_MS (1ULL << 20)
#define RDMATENSOR_SET_PROBE_MS (1ULL << 21)
#define RDMATENSOR_SET_GATHER_LANES (1ULL << 22)
#define RDMATENSOR_SET_CQ_MOD (1ULL << 23)
#define RDMATENSOR_SET_CQ_POLL (1ULL << 24)
#define RDMATENSOR_SET_VALIDATE (1ULL << 25)
#define RDMATENSOR_SET_MR_PAGE_BYTES (1ULL << 26)
#define RDMATENSOR_SET_MR_MODE (1ULL << 27)
#define RDMATENSOR_SET_LIST_MODE (1ULL << 28)
#define RDMATENSOR_SET_ALL ((1ULL << 29) - 1)
	__s32 domain_fd;
	__u32 mr_mode;
#define RDMATENSOR_MR_MODE_POOL 1
#define RDMATENSOR_MR_MODE_STRICT 2
	__u32 list_mode;
#define RDMATENSOR_LIST_MODE_ALL 1
#define RDMATENSOR_LIST_MODE_NONE 2
	__u32 __reserved;
};

#define RDMATENSOR_START _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_START)

/**
 * struct rdmatensor_configure - ioctl(RDMATENSOR_CONFIGURE)
 * @size: sizeof(struct rdmatensor_configure)
 * @mask: which of @flags to take over
 * @flags: RDMATENSOR_CONFIGURE_VALIDATE: data-validation mode. A fetch whose
 *         receiver or sender is in it takes the meta-data path, carries a
 *         CRC32C of the content and is checked after its arrival; a mismatch
 *         is that fetch's -EBADMSG. Loopback fetches and the rows of gathers
 *         are not checked
 * @__reserved: must be 0
 *
 * Takes effect for fetches that are submitted, and requests that arrive, from
 * now on. -ENOTCONN before START.
 */
struct rdmatensor_configure {
	__u32 size;
	__u32 mask;
	__u32 flags;
#define RDMATENSOR_CONFIGURE_VALIDATE (1 << 0)
	__u32 __reserved;
};

#define RDMATENSOR_CONFIGURE _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_CONFIGURE)

/**
 * enum rdmatensor_stat - counters, in the order of RDMATENSOR_STATS
 *
 * All count from START (of a channel: from its set-up) and never fall.
 *
 * @RDMATENSOR_STAT_FETCHES: fetches submitted
 * @RDMATENSOR_STAT_FETCHED: fetches that ended with their tensor
 * @RDMATENSOR_STAT_FETCH_ERRORS: fetches that ended with an errno
 * @RDMATENSOR_STAT_FETCHED_BYTES: content bytes that arrived, or were shared
 * @RDMATENSOR_STAT_SERVED: contents sent and acknowledged by the peer's device
 * @RDMATENSOR_STAT_SERVED_BYTES: their bytes
 * @RDMATENSOR_STAT_PUBLISHED: tensors published
 * @RDMATENSOR_STAT_RELEASED: published tensors whose buffer was released
 * @RDMATENSOR_STAT_SUBMITS: SUBMIT calls
 * @RDMATENSOR_STAT_TX_MESSAGES: control messages written
 * @RDMATENSOR_STAT_TX_REQUESTS: TENSOR_REQUESTs among them
 * @RDMATENSOR_STAT_TX_META_DATA_RESPONSES: META_DATA_RESPONSEs among them
 * @RDMATENSOR_STAT_TX_RE_REQUESTS: TENSOR_RE_REQUESTs among them
 * @RDMATENSOR_STAT_TX_ERROR_STATUSES: ERROR_STATUSes among them
 * @RDMATENSOR_STAT_TX_CANCELS: CANCELs among them
 * @RDMATENSOR_STAT_TX_ACKS: acks written
 * @RDMATENSOR_STAT_TX_WRITES: content writes posted
 * @RDMATENSOR_STAT_RX_MESSAGES: control messages consumed
 * @RDMATENSOR_STAT_RX_ACKS: acks received
 * @RDMATENSOR_STAT_RX_CONTENTS: content immediates received
 * @RDMATENSOR_STAT_RX_STRAY: messages about requests that had ended already
 * @RDMATENSOR_STAT_STALL_SLOTS: messages that had to wait for a slot
 * @RDMATENSOR_STAT_STALL_SENDQ: writes that had to wait for room in the send queue, or for their
 *         turn below lane_bytes: about one for each short tensor beside long ones, and no defect
 * @RDMATENSOR_STAT_STALL_REQUESTS: requests that had to wait for the peer's limit
 * @RDMATENSOR_STAT_COPIED_BYTES: payload bytes that the CPU copied (loopback fetches
 *         to a place, PUBLISH with RDMATENSOR_OP_COPY, and fetches that needed the proxy of
 *         RDMATENSOR_OP_PROXY, which count in their channel)
 * @RDMATENSOR_STAT_VALIDATED: contents whose checksum was compared
 * @RDMATENSOR_STAT_VALIDATE_ERRORS: and differed
 * @RDMATENSOR_STAT_PROTOCOL_ERRORS: channels ended because the peer broke the
 *         protocol
 * @RDMATENSOR_STAT_CHANNELS_UP: channels that came up
 * @RDMATENSOR_STAT_CHANNELS_DOWN: channels that went down
 * @RDMATENSOR_STAT_TX_PROBES: empty writes on quiet channels, and on queue pairs that complete
 *         nothing of what is posted to them
 * @RDMATENSOR_STAT_GATHERS: gathers submitted
 * @RDMATENSOR_STAT_GATHERED: gathers that ended with all rows
 * @RDMATENSOR_STAT_GATHER_ERRORS: gathers that ended with an errno
 * @RDMATENSOR_STAT_GATHERED_ROWS: rows delivered, of gathers that failed too
 * @RDMATENSOR_STAT_GATHER_READS: RDMA READs posted
 * @RDMATENSOR_STAT_GATHER_LISTS: lists that they were posted in, one call each
 * @RDMATENSOR_STAT_GATHER_SIGNALLED: completions of lists
 * @RDMATENSOR_STAT_GATHER_COPIES: rows copied by the CPU: own, cached, repeated
 * @RDMATENSOR_STAT_GATHER_AGAIN: rows posted again, because a lane had failed
 * @RDMATENSOR_STAT_GATHER_LANES_DOWN: lanes for gathers that have failed
 * @RDMATENSOR_STAT_SHARED: loopback fetches that got the tensor itself
 * @RDMATENSOR_STAT_SHARES_RELEASED: of those, released
 * @RDMATENSOR_STAT_PUBLISH_COPIES: tensors copied by PUBLISH with RDMATENSOR_OP_COPY
 * @RDMATENSOR_STAT_BUFFERS_MADE: tensor buffers made for that; the others found one
 * @RDMATENSOR_STAT_TX_SHORT_REQUESTS: TENSOR_REQUESTs that refer to a destination that the
 *         peer was told before (RDMATENSOR_OP_KEEP)
 * @RDMATENSOR_STAT_LISTS: lists submitted
 * @RDMATENSOR_STAT_LISTED: lists that ended with their entries
 * @RDMATENSOR_STAT_LIST_ERRORS: lists that ended with an errno
 */
enum rdmatensor_stat {
	RDMATENSOR_STAT_FETCHES,
	RDMATENSOR_STAT_FETCHED,
	RDMATENSOR_STAT_FETCH_ERRORS,
	RDMATENSOR_STAT_FETCHED_BYTES,
	RDMATENSOR_STAT_SERVED,
	RDMATENSOR_STAT_SERVED_BYTES,
	RDMATENSOR_STAT_PUBLISHED,
	RDMATENSOR_STAT_RELEASED,
	RDMATENSOR_STAT_SUBMITS,
	RDMATENSOR_STAT_TX_MESSAGES,
	RDMATENSOR_STAT_TX_REQUESTS,
	RDMATENSOR_STAT_TX_META_DATA_RESPONSES,
	RDMATENSOR_STAT_TX_RE_REQUESTS,
	RDMATENSOR_STAT_TX_ERROR_STATUSES,
	RDMATENSOR_STAT_TX_CANCELS,
	RDMATENSOR_STAT_TX_ACKS,
	RDMATENSOR_STAT_TX_WRITES,
	RDMATENSOR_STAT_RX_MESSAGES,
	RDMATENSOR_STAT_RX_ACKS,
	RDMATENSOR_STAT_RX_CONTENTS,
	RDMATENSOR_STAT_RX_STRAY,
	RDMATENSOR_STAT_STALL_SLOTS,
	RDMATENSOR_STAT_STALL_SENDQ,
	RDMATENSOR_STAT_STALL_REQUESTS,
	RDMATENSOR_STAT_COPIED_BYTES,
	RDMATENSOR_STAT_VALIDATED,
	RDMATENSOR_STAT_VALIDATE_ERRORS,
	RDMATENSOR_STAT_PROTOCOL_ERRORS,
	RDMATENSOR_STAT_CHANNELS_UP,
	RDMATENSOR_STAT_CHANNELS_DOWN,
	RDMATENSOR_STAT_TX_PROBES,
	RDMATENSOR_STAT_GATHERS,
	RDMATENSOR_STAT_GATHERED,
	RDMATENSOR_STAT_GATHER_ERRORS,
	RDMATENSOR_STAT_GATHERED_ROWS,
	RDMATENSOR_STAT_GATHER_READS,
	RDMATENSOR_STAT_GATHER_LISTS,
	RDMATENSOR_STAT_GATHER_SIGNALLED,
	RDMATENSOR_STAT_GATHER_COPIES,
	RDMATENSOR_STAT_GATHER_AGAIN,
	RDMATENSOR_STAT_GATHER_LANES_DOWN,
	RDMATENSOR_STAT_SHARED,
	RDMATENSOR_STAT_SHARES_RELEASED,
	RDMATENSOR_STAT_PUBLISH_COPIES,
	RDMATENSOR_STAT_BUFFERS_MADE,
	RDMATENSOR_STAT_TX_SHORT_REQUESTS,
	RDMATENSOR_STAT_LISTS,
	RDMATENSOR_STAT_LISTED,
	RDMATENSOR_STAT_LIST_ERRORS,
	/* private: how many there are */
	RDMATENSOR_STAT_NR,
};

/**
 * struct rdmatensor_stats - ioctl(RDMATENSOR_STATS)
 * @size: sizeof(struct rdmatensor_stats)
 * @channel: one channel's counters; 0: the context's, its dead channels included
 * @nr: in: room at @counters_uptr, in counters; out: counters this kernel has.
 *         The lesser of both is written
 * @__reserved: must be 0
 * @counters_uptr: array of __u64, indexed by enum rdmatensor_stat
 */
struct rdmatensor_stats {
	__u32 size;
	__u32 channel;
	__u32 nr;
	__u32 __reserved;
	__aligned_u64 counters_uptr;
};

#define RDMATENSOR_STATS _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_STATS)

/**
 * enum rdmatensor_pool_peers - what the peers of a context may do with one of its pools
 * @RDMATENSOR_POOL_PEERS_WRITE: write, for as long as the pool exists, or in strict mode (START's
 *     mr_mode) what is fetched from them: FETCH has them write to its destination. They read
 *     what is exported of it (RDMATENSOR_TABLE_EXPORT)
 * @RDMATENSOR_POOL_PEERS_NONE: nothing. What is published is read by this side, and a GATHER
 *     or a loopback FETCH writes by it, so these work; FETCH over a channel is -EACCES without
 *     RDMATENSOR_OP_PROXY, and TABLE_EXPORT is
 * @RDMATENSOR_POOL_PEERS_READ: read what is exported of it, while it is exported; FETCH over a
 *     channel is -EACCES without RDMATENSOR_OP_PROXY. No peer can change the rows of such a pool
 */
enum rdmatensor_pool_peers {
	RDMATENSOR_POOL_PEERS_WRITE = 0,
	RDMATENSOR_POOL_PEERS_NONE = 1,
	RDMATENSOR_POOL_PEERS_READ = 2,
};

/**
 * struct rdmatensor_pool_create - ioctl(RDMATENSOR_POOL_CREATE)
 * @size: sizeof(struct rdmatensor_pool_create)
 * @flags: must be 0
 * @bytes: in: bytes wanted, 1 to 2^43; out: rounded up to whole pages
 * @out_pool_id: out: id, from 1
 * @peers: enum rdmatensor_pool_peers; in a module that does not know it, must be 0
 * @out_mmap_offset: out: offset for mmap() of the whole pool, MAP_SHARED: not 0, a
 *         multiple of the page size, and below 2^44, so that a process of 32 bits can
 *         name it. It names the pool as a whole, and nothing is to be added to it
 *
 * A pool of kernel pages, zeroed, registered for what @peers lets this context's peers do with
 * it (see Documentation/limits.md). The caller's memory cgroup pays for its pages until they are
 * free. Where the host says so (parameter memlock), they are locked memory of the caller's user
 * as well: RLIMIT_MEMLOCK of the caller bounds what that user has in all, as for io_uring.
 * CAP_IPC_LOCK is above it, and what is made with it does not count.
 * -ENOMEM: one of these limits, or no pages; -EOVERFLOW: more than the
 * device registers; -EUSERS: START's max_pools are there; -EDQUOT: the RDMA cgroup allows no
 * more memory regions (rdma.max, hca_object), one for each key; -EINTR: the process is killed
 * while it waits for memory of the same user that is being freed; -EINVAL: a field, such as
 * @peers in a module that does not know it.
 */
struct rdmatensor_pool_create {
	__u32 size;
	__u32 flags;
	__aligned_u64 bytes;
	__u32 out_pool_id;
	__u32 peers;
	__aligned_u64 out_mmap_offset;
};

#define RDMATENSOR_POOL_CREATE _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_POOL_CREATE)

/**
 * struct rdmatensor_pool_register - ioctl(RDMATENSOR_POOL_REGISTER)
 * @size: sizeof(struct rdmatensor_pool_register)
 * @flags: RDMATENSOR_REGISTER_READ_ONLY: memory that the process may only read. It can be
 *         published and exported; as the destination of a FETCH or GATHER it is -EACCES
 * @addr: address of the first page, a multiple of the page size
 * @bytes: length, a multiple of the page size, not 0
 * @peers: enum rdmatensor_pool_peers; not _WRITE with RDMATENSOR_REGISTER_READ_ONLY
 * @out_pool_id: out: id, from 1; 0 on error
 * @cause: out, also when the call fails: a zero-terminated line with cause and remedy
 *
 * A pool of the process's own pages, in place: anonymous memory, memfd_create(), hugetlbfs, a
 * file's pages for reading. It is one region from the start, so that tensors are at any offset of
 * it, also one that is no multiple of RDMATENSOR_REGION_ALIGN; freed by RDMATENSOR_OP_FREE, it
 * can be handed out by RDMATENSOR_POOL_ALLOC like other pools. mmap() of it is -ENODEV.
 *
 * The pages stay pinned until POOL_DESTROY, and until what uses the pool has ended. What the
 * process does with the addresses changes nothing about that: after munmap(), MADV_DONTNEED,
 * mremap(), or the truncation of the file, the pool has the pages that it was made of, and the
 * process others or none. After fork() they are the parent's, and the child has copies of what
 * was private. The same pages may be in several pools, which know nothing of each other.
 *
 * They are locked memory of the caller's user, whatever the parameter memlock says. -EFAULT: a
 * page cannot be had; -EACCES: the process may not use it, or not write it without
 * RDMATENSOR_REGISTER_READ_ONLY; -EOPNOTSUPP: a device's memory, a DAX file, or, for writing, a
 * shared mapping of a file whose file system must see each write; -EINVAL: a field; -ENOMEM,
 * -EOVERFLOW, -EUSERS, -EDQUOT, -EINTR: as for RDMATENSOR_POOL_CREATE. Nothing is pinned then.
 */
struct rdmatensor_pool_register {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_REGISTER_READ_ONLY (1 << 0)
#define RDMATENSOR_REGISTER_FLAGS 0x1
	__aligned_u64 addr;
	__aligned_u64 bytes;
	__u32 peers;
	__u32 out_pool_id;
	char cause[256];
};

#define RDMATENSOR_POOL_REGISTER _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_POOL_REGISTER)

/**
 * struct rdmatensor_pool_import - ioctl(RDMATENSOR_POOL_IMPORT)
 * @size: sizeof(struct rdmatensor_pool_import)
 * @flags: RDMATENSOR_IMPORT_READ_ONLY: as a destination it is -EACCES, and neither peers nor
 *         this context write to it
 * @fd: the dma-buf, open for writing too unless with RDMATENSOR_IMPORT_READ_ONLY
 * @peers: enum rdmatensor_pool_peers; not _WRITE with RDMATENSOR_IMPORT_READ_ONLY
 * @out_pool_id: out: id, from 1; 0 on error
 * @out_flags: out: RDMATENSOR_IMPORTED_UNREACHABLE: the kernel's CPU does not use the bytes, as
 *             always where the RDMA device has DMA. What it would copy or add up is -EOPNOTSUPP
 *             for such a pool: a fetch from the own context, checksums
 *             (RDMATENSOR_START_VALIDATE), PUBLISH with RDMATENSOR_OP_COPY, own and cached rows
 *             of a gather, the order of a table
 * @out_bytes: out: length of the pool, which is the dma-buf's
 * @cause: out, also when the call fails: a zero-terminated line with cause and remedy
 *
 * A pool of another driver's memory: of a GPU, of udmabuf, of a dma-buf heap. It is pinned until
 * the pool has ended, where its exporter pins it: several move it to memory of the system for
 * that. The dma-buf stays as long, whatever becomes of the descriptor. It is one region from the
 * start, as a pool of RDMATENSOR_POOL_REGISTER. mmap() of it is -ENODEV: map the dma-buf, and
 * bracket what the CPU does there by DMA_BUF_IOCTL_SYNC.
 *
 * A device in software, such as soft-RoCE, needs memory that the CPU can reach: -EOPNOTSUPP. It
 * counts like other pools, for the memory that it keeps. -EBADF: no descriptor; -EINVAL: it is
 * no dma-buf, or of a length that is no multiple of the page size, or a field; -EACCES: it is
 * open for reading alone; -EOPNOTSUPP: also what the exporter refuses, and what it is not ready
 * with in 10 s; -EINTR: a signal, while the exporter is waited for; -ENOMEM, -EOVERFLOW, -EUSERS,
 * -EDQUOT: as for RDMATENSOR_POOL_CREATE. Nothing is pinned then.
 */
struct rdmatensor_pool_import {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_IMPORT_READ_ONLY (1 << 0)
#define RDMATENSOR_IMPORT_FLAGS 0x1
	__s32 fd;
	__u32 peers;
	__u32 out_pool_id;
	__u32 out_flags;
#define RDMATENSOR_IMPORTED_UNREACHABLE (1 << 0)
	__aligned_u64 out_bytes;
	char cause[256];
};

#define RDMATENSOR_POOL_IMPORT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_POOL_IMPORT)

/**
 * struct rdmatensor_pool_destroy - ioctl(RDMATENSOR_POOL_DESTROY)
 * @size: sizeof(struct rdmatensor_pool_destroy)
 * @pool_id: the pool
 *
 * -EBUSY while a tensor in it is published, rows in it are exported or cached, or a fetch
 * or gather into it has not ended. Who has seen all their entries, and closed all tables
 * of it, is not told -EBUSY, whoever else looks at the pool.
 * Regions that the process still holds end with it; mappings stay readable
 * until they are unmapped, but are connected to nothing. The memory is there, and
 * counts, until the pool is destroyed and its last mapping is gone. It is free when the last of
 * these calls returns: POOL_DESTROY, the munmap() of the last mapping, or the close() that ends the
 * domain. It may be free a moment later if another call names the pool at that time, or if what
 * has used it has not written its entry yet.
 */
struct rdmatensor_pool_destroy {
	__u32 size;
	__u32 pool_id;
};

#define RDMATENSOR_POOL_DESTROY _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_POOL_DESTROY)

/**
 * struct rdmatensor_pool_alloc - ioctl(RDMATENSOR_POOL_ALLOC)
 * @size: sizeof(struct rdmatensor_pool_alloc)
 * @pool_id: the pool
 * @bytes: bytes wanted, at least 1; rounded up to RDMATENSOR_REGION_ALIGN
 * @out_offset: out: where the region begins in the pool, in bytes
 *
 * Gives the process a region of the pool, to fill and publish from, or to fetch
 * into. It is freed by an operation RDMATENSOR_OP_FREE. -ENOSPC: no free
 * extent is that long.
 */
struct rdmatensor_pool_alloc {
	__u32 size;
	__u32 pool_id;
	__aligned_u64 bytes;
	__aligned_u64 out_offset;
};

#define RDMATENSOR_POOL_ALLOC _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_POOL_ALLOC)

/**
 * struct rdmatensor_pool_query - ioctl(RDMATENSOR_POOL_QUERY)
 * @size: sizeof(struct rdmatensor_pool_query)
 * @pool_id: in: a pool's id, or with RDMATENSOR_POOL_NEXT the id to go on after, 0 to begin;
 *           out: the id that is described. Ids grow, and begin again after 2^28 pools
 * @flags: RDMATENSOR_POOL_NEXT
 * @out_flags: out: RDMATENSOR_POOL_MAPPABLE: mmap() of @out_mmap_offset maps it;
 *             RDMATENSOR_POOL_WRITABLE: it can be a destination
 * @peers: out: enum rdmatensor_pool_peers
 * @keys: out: memory regions that it is registered with
 * @bytes: out: its length
 * @out_mmap_offset: out: see RDMATENSOR_POOL_CREATE
 * @kind: out: what memory it is, zero-terminated, as "rdmatensor show pools" has it
 *
 * Describes a pool of the context's domain, whoever has made it. -ENOENT: no such pool, with
 * _NEXT: no further one.
 */
struct rdmatensor_pool_query {
	__u32 size;
	__u32 pool_id;
	__u32 flags;
#define RDMATENSOR_POOL_NEXT (1 << 0)
	__u32 out_flags;
#define RDMATENSOR_POOL_MAPPABLE (1 << 0)
#define RDMATENSOR_POOL_WRITABLE (1 << 1)
	__u32 peers;
	__u32 keys;
	__aligned_u64 bytes;
	__aligned_u64 out_mmap_offset;
	char kind[16];
};

#define RDMATENSOR_POOL_QUERY _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_POOL_QUERY)

/**
 * struct rdmatensor_domain_create - ioctl(RDMATENSOR_DOMAIN_CREATE)
 * @size: sizeof(struct rdmatensor_domain_create)
 * @flags: RDMATENSOR_DOMAIN_CLOEXEC: close it in a program that this one executes
 * @out_fd: out: a descriptor of the context's domain
 * @__reserved: must be 0
 *
 * A domain has the pools of its contexts, their registration, and what they have published with
 * uses 0. It stays as long as one of its contexts is open, or a descriptor of it, wherever that
 * is: inherited, sent to another process (SCM_RIGHTS), or kept by a service manager. Who has a
 * descriptor can join (RDMATENSOR_START_DOMAIN), and do with the pools what their makers can.
 * Regions belong to the pool: any context of the domain may publish from them and free them.
 *
 * A context that ends, however, takes its channels, fetches, tables and other publications with
 * it, and nothing of the domain: regions that it was handed stay handed out, also those of
 * entries that it has not seen, until they are freed (RDMATENSOR_OP_FREE) or their pool is
 * destroyed by another context.
 *
 * A domain that has had a descriptor counts against max_contexts of the host: -EUSERS. -EMFILE,
 * -ENFILE: descriptors; -ENODEV: the device was removed.
 */
struct rdmatensor_domain_create {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_DOMAIN_CLOEXEC (1 << 0)
	__s32 out_fd;
	__u32 __reserved;
};

#define RDMATENSOR_DOMAIN_CREATE _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_DOMAIN_CREATE)

/**
 * struct rdmatensor_domain_query - ioctl(RDMATENSOR_DOMAIN_QUERY), on a domain's descriptor
 * @size: sizeof(struct rdmatensor_domain_query)
 * @flags: out: RDMATENSOR_DOMAIN_DEVICE_GONE: nothing can be done with it any more
 * @contexts: out: started contexts that have it
 * @pools: out: its pools
 * @max_pools: out: bound on these
 * @__reserved: must be 0
 * @pool_bytes: out: length of all pools
 * @lasting: out: tensors that are published with uses 0
 * @device_name: out: RDMA device, zero-terminated
 */
struct rdmatensor_domain_query {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_DOMAIN_DEVICE_GONE (1 << 0)
	__u32 contexts;
	__u32 pools;
	__u32 max_pools;
	__u32 __reserved;
	__aligned_u64 pool_bytes;
	__aligned_u64 lasting;
	char device_name[64];
};

#define RDMATENSOR_DOMAIN_QUERY _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_DOMAIN_QUERY)

/**
 * struct rdmatensor_lasting_query - ioctl(RDMATENSOR_LASTING_QUERY)
 * @size: sizeof(struct rdmatensor_lasting_query)
 * @flags: out: RDMATENSOR_LASTING_DEAD: is_dead; RDMATENSOR_LASTING_COPIED: it was published with
 *         RDMATENSOR_OP_COPY; RDMATENSOR_LASTING_WITHDRAWING: withdrawn, by itself or with its
 *         generation, or replaced with that, and still being read;
 *         RDMATENSOR_LASTING_RETIRED: its publisher has aborted the step: nobody offers it, and it
 *         needs its WITHDRAW; RDMATENSOR_LASTING_HIDDEN: its generation has not been revealed
 * @cursor: in: 0 to begin, then what the last call has left here; out: to go on
 * @step_id: out: the step
 * @pool_id: out: pool that it is in; 0: copied, failed, or empty
 * @data_type: out: enum rdmatensor_data_type
 * @offset: out: where in the pool
 * @bytes: out: length of its content
 * @ndims: out: valid members of @dims
 * @status: out: errno that it is offered with instead (RDMATENSOR_OP_FAILED), 0: it is a tensor
 * @name_len: out: bytes of @name
 * @__reserved: must be 0
 * @dims: out: its shape
 * @name: out: any bytes, not terminated
 *
 * Describes a tensor that was published with uses 0 in the context's domain, by whatever context,
 * and is offered by all of them; in the order of their publication, until their numbers begin
 * again after 2^31. One whose PUBLISH has not returned may be among them. -ENOENT: there is no
 * further one.
 */
struct rdmatensor_lasting_query {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_LASTING_DEAD (1 << 0)
#define RDMATENSOR_LASTING_COPIED (1 << 1)
#define RDMATENSOR_LASTING_WITHDRAWING (1 << 2)
#define RDMATENSOR_LASTING_RETIRED (1 << 3)
#define RDMATENSOR_LASTING_HIDDEN (1 << 4)
	__aligned_u64 cursor;
	__s64 step_id;
	__u32 pool_id;
	__u32 data_type;
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__u32 ndims;
	__s32 status;
	__u32 name_len;
	__u32 __reserved;
	__rdmatensor_dim dims[RDMATENSOR_DIMS_MAX];
	char name[RDMATENSOR_NAME_MAX];
};

#define RDMATENSOR_LASTING_QUERY _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_LASTING_QUERY)

/* The buffer of a dump has so many bytes at least; more than _MAX are not used */
#define RDMATENSOR_DUMP_ROOM_MIN 8192
#define RDMATENSOR_DUMP_ROOM_MAX 32768

/**
 * struct rdmatensor_dump - ioctl(RDMATENSOR_DUMP)
 * @size: sizeof(struct rdmatensor_dump)
 * @flags: out: RDMATENSOR_DUMP_CHANGED: something came or went since the last call, as
 *         NLM_F_DUMP_INTR: objects may be missing or told twice. For a list without gaps set @place
 *         and @generation to 0 and ask for all of it again
 * @command: enum rdmatensor_nl_cmd (<rdmatensor/netlink.h>), a dump
 * @context: the context that the dump is of; 0: all. One that does not exist, or is another
 *           user's, has no objects. Domains are no context's: must be 0 for these
 * @buf_uptr: where the messages go: aligned to 4 bytes
 * @room: bytes there, from RDMATENSOR_DUMP_ROOM_MIN (8192); of more than RDMATENSOR_DUMP_ROOM_MAX
 *        (32768) the rest is not used
 * @out_bytes: out: length of the messages; 0: the dump has ended
 * @place: in: zeros to begin, then what the last call has left here; out: to go on. Whoever begins
 *         with anything else is shown a part, or nothing
 * @generation: in: 0 to begin, then what the last call has left here; out: to go on
 * @__reserved: must be 0
 *
 * What the netlink family's dumps show, in the same messages, of the calling user's own: contexts
 * that were opened, and domains that were made, with the caller's effective user ID, by processes
 * that its PID namespace has, in the network namespace of the descriptor's opener. It takes no
 * privilege and no START, so that a process in a container sees what its own do. Of other users
 * it tells nothing, not even that something of theirs has changed.
 *
 * A message is a struct nlmsghdr, a struct genlmsghdr and attributes, as netlink's dumps send it
 * and as NLMSG_NEXT(), genlmsg_parse() and the like read it. nlmsg_type is the family's id,
 * nlmsg_seq and nlmsg_pid are 0, genlmsghdr.cmd is @command. No NLMSG_DONE ends them: a call
 * whose @out_bytes is 0 does.
 *
 * -EINVAL: a field; -EFAULT: the buffer cannot be written; -ENOMEM. The same call may be made
 * again.
 */
struct rdmatensor_dump {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_DUMP_CHANGED (1 << 0)
	__u32 command;
	__u32 context;
	__aligned_u64 buf_uptr;
	__u32 room;
	__u32 out_bytes;
	__aligned_u64 place[6];
	__u32 generation;
	__u32 __reserved;
};

#define RDMATENSOR_DUMP _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_DUMP)

/**
 * struct rdmatensor_connect - ioctl(RDMATENSOR_CONNECT)
 * @size: sizeof(struct rdmatensor_connect)
 * @flags: RDMATENSOR_CONNECT_NOWAIT: a peer that is not up is an error at once
 * @addr: struct sockaddr_in or _in6 of the peer's listener
 * @out_channel: out: id, from 1
 * @worker: the name that the peer must have, without control characters; empty: any
 * @user_data: returned in the channel's CHANNEL_DOWN entry
 * @timeout_ms: bound on the whole call, in milliseconds; 0: START's handshake_ms
 * @__reserved: must be 0
 * @cause: out, also when the call fails: a zero-terminated line with cause and
 *         remedy, and how long a peer was waited for
 *
 * Returns when all lanes are up and both sides have said HELLO. Workers start in any
 * order: while nobody answers at @addr it is tried again, up to @timeout_ms, after
 * pauses of 10 ms at first and of 1 s at most; the kernel's log and an event
 * RDMATENSOR_NL_EVENT_CONNECT_WAITS tell it once. Nobody answers if the error is one of
 * -ECONNREFUSED: no listener; -ENETUNREACH, -EHOSTUNREACH: no route or no neighbour;
 * -ETIMEDOUT: nothing was heard. It is that of the last try that came to an end. All
 * others end the call at once, and so does whatever a worker at the other end has
 * answered: -ETIMEDOUT: it stopped in the middle; -EPROTONOSUPPORT: the peer speaks
 * another wire version; -ENOENT: the peer has another worker name; -EUSERS: the peer
 * or this side has all the channels that it allows; -EDQUOT: the RDMA cgroup allows the lanes
 * and the message buffer no more queue pairs and memory regions (rdma.max); -EXDEV: the route
 * leads over another RDMA device; -EADDRNOTAVAIL: @addr is a loopback address, or none, which no
 * RDMA device has; -EAGAIN: no room in this side's or the peer's completion ring for the
 * channel's events; -ENODEV; -EINTR: a signal. A call that waits between two tries holds no
 * channel: DISCONNECT cannot end it, and max_channels counts only those that are
 * tried.
 */
struct rdmatensor_connect {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_CONNECT_NOWAIT (1 << 0)
	__u8 addr[28];
	__u32 out_channel;
	char worker[RDMATENSOR_WORKER_MAX];
	__aligned_u64 user_data;
	__u32 timeout_ms;
	__u32 __reserved;
	char cause[256];
};

#define RDMATENSOR_CONNECT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_CONNECT)

/**
 * struct rdmatensor_disconnect - ioctl(RDMATENSOR_DISCONNECT)
 * @size: sizeof(struct rdmatensor_disconnect)
 * @channel: the channel
 *
 * Ends the channel. Writes that have been posted by then complete first, and content that
 * arrives counts as delivered; fetches that have not ended end with -ESHUTDOWN, and tensors
 * that were not delivered are published as before. Returns when nothing can be written by that
 * peer any more; the CHANNEL_DOWN entry is in the ring by then. A peer that does not answer is
 * waited for, for four ack timeouts, which are at least one second and at most ten; then what
 * has not been acknowledged counts as not delivered. close() ends all channels in this way,
 * within the same time.
 */
struct rdmatensor_disconnect {
	__u32 size;
	__u32 channel;
};

#define RDMATENSOR_DISCONNECT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_DISCONNECT)

/**
 * struct rdmatensor_channel_query - ioctl(RDMATENSOR_CHANNEL_QUERY)
 * @size: sizeof(struct rdmatensor_channel_query)
 * @channel: in: a channel id, or with RDMATENSOR_CHANNEL_NEXT the id to go on
 *         after, 0 to begin; out: the id that is described. Ids grow
 * @flags: RDMATENSOR_CHANNEL_NEXT
 * @state: out: enum rdmatensor_channel_state
 * @worker: out: the peer's worker name
 * @incarnation: out: the peer's incarnation
 * @addr: out: the peer's address, struct sockaddr_in or _in6
 * @lanes: out: queue pairs
 * @msg_slots: out: slots of the peer's message buffer
 * @msg_slot_bytes: out: bytes of each
 * @ack_batch: out: messages that an ack from the peer reports
 * @max_requests: out: requests that may be outstanding at the peer
 * @requests: out: fetches that have not ended
 * @responses: out: the peer's requests that have not ended here
 *
 * -ENOENT: no such channel, with _NEXT: no further one.
 */
struct rdmatensor_channel_query {
	__u32 size;
	__u32 channel;
	__u32 flags;
#define RDMATENSOR_CHANNEL_NEXT (1 << 0)
	__u32 state;
	char worker[RDMATENSOR_WORKER_MAX];
	__aligned_u64 incarnation;
	__u8 addr[28];
	__u32 lanes;
	__u32 msg_slots;
	__u32 msg_slot_bytes;
	__u32 ack_batch;
	__u32 max_requests;
	__u32 requests;
	__u32 responses;
};

#define RDMATENSOR_CHANNEL_QUERY _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_CHANNEL_QUERY)

/**
 * enum rdmatensor_channel_state - life of a channel, in this order
 * @RDMATENSOR_CHANNEL_CONNECTING: lanes are being set up
 * @RDMATENSOR_CHANNEL_UP: both sides have said HELLO
 * @RDMATENSOR_CHANNEL_CLOSING: nothing new is taken; lanes are being torn down
 * @RDMATENSOR_CHANNEL_DOWN: the peer can reach nothing any more
 */
enum rdmatensor_channel_state {
	RDMATENSOR_CHANNEL_CONNECTING,
	RDMATENSOR_CHANNEL_UP,
	RDMATENSOR_CHANNEL_CLOSING,
	RDMATENSOR_CHANNEL_DOWN,
};

/**
 * struct rdmatensor_table_export - ioctl(RDMATENSOR_TABLE_EXPORT)
 * @size: sizeof(struct rdmatensor_table_export)
 * @flags: must be 0
 * @name_uptr: the table's name, any bytes
 * @name_len: its length, 1..RDMATENSOR_NAME_MAX
 * @pool_id: pool that the rows are in
 * @offset: of the first row, a multiple of 4096, in bytes
 * @row_start: number of that row in the table
 * @row_end: number after the last row
 * @row_bytes: bytes of a row, 1..RDMATENSOR_ROW_MAX
 * @stride: distance of two rows in bytes, at least @row_bytes; 0: @row_bytes
 * @data_type: enum rdmatensor_data_type of the elements; peers' must agree
 * @out_table: out: id, to be given to TABLE_CLOSE
 *
 * Offers rows to all peers of this context, to be read and not to be written, until
 * TABLE_CLOSE or the context's end. What is offered is whole pages, up to the end of
 * the last row's page: they must lie inside one region that the process holds. A
 * gather that is in flight while the process writes to a row reads some of the old
 * bytes and some of the new ones. -EEXIST: this context offers rows under that name;
 * -EINVAL: a field, or no such region; -EACCES: peers must not read the pool (enum
 * rdmatensor_pool_peers); -EUSERS: 1024 tables are there; -EDQUOT: as for POOL_CREATE.
 */
struct rdmatensor_table_export {
	__u32 size;
	__u32 flags;
	__aligned_u64 name_uptr;
	__u32 name_len;
	__u32 pool_id;
	__aligned_u64 offset;
	__aligned_u64 row_start;
	__aligned_u64 row_end;
	__aligned_u64 row_bytes;
	__aligned_u64 stride;
	__u32 data_type;
	__u32 out_table;
};

#define RDMATENSOR_TABLE_EXPORT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_TABLE_EXPORT)

/* Longest row of a table, in bytes */
#define RDMATENSOR_ROW_MAX (1 << 20)
/* Most owners, and most caches, of one table */
#define RDMATENSOR_OWNERS_MAX 1024

/**
 * struct rdmatensor_table_cache - rows that the reader has a copy of
 * @row_start: number of the first row
 * @row_end: number after the last one
 * @offset: where the first one is in the pool, a multiple of RDMATENSOR_REGION_ALIGN but in one
 *          that was registered or imported
 * @stride: distance of two rows in bytes; 0: the table's row_bytes
 * @pool_id: pool that they are in
 * @__reserved: must be 0
 */
struct rdmatensor_table_cache {
	__aligned_u64 row_start;
	__aligned_u64 row_end;
	__aligned_u64 offset;
	__aligned_u64 stride;
	__u32 pool_id;
	__u32 __reserved;
};

/**
 * struct rdmatensor_table_open - ioctl(RDMATENSOR_TABLE_OPEN)
 * @size: sizeof(struct rdmatensor_table_open)
 * @flags: RDMATENSOR_TABLE_ORDER: ids are turned into rows by an array of __u64;
 *         RDMATENSOR_TABLE_ORDER32: of __u32;
 *         RDMATENSOR_TABLE_NOWAIT: a table that is not exported yet is an error at once
 * @name_uptr: the table's name, as its owners export it
 * @name_len: its length
 * @nr_channels: members of @channels_uptr, 1..RDMATENSOR_OWNERS_MAX
 * @channels_uptr: array of __u32: channels to all owners, whichever side has connected
 *         them; RDMATENSOR_CHANNEL_SELF: its own export
 * @caches_uptr: array of struct rdmatensor_table_cache: rows that are taken from there, and
 *               not from their owner, if they have one; in the order of the rows, none in two
 * @nr_caches: its length, at most RDMATENSOR_OWNERS_MAX
 * @order_pool_id: with a flag: pool that the array is in
 * @order_offset: where in it, a multiple of RDMATENSOR_REGION_ALIGN
 * @order_nr: its length: ids are 0..order_nr - 1
 * @timeout_ms: bound on the whole call, in milliseconds; 0: START's handshake_ms
 * @data_type: out: enum rdmatensor_data_type
 * @out_rows: out: number after the last row
 * @out_row_bytes: out: bytes of a row
 * @out_table: out: id
 * @__reserved: must be 0
 * @cause: out, also when the call fails: a zero-terminated line with cause and
 *         remedy
 *
 * Asks each owner for its rows, and connects gather_lanes queue pairs to its listener, that
 * other tables of that owner use too. An owner that does not export the table yet tells when
 * it does: owners and readers start in any order. The kernel's log says once who is waited
 * for. -ENOENT: an owner has not exported the table in that time, or at all before this call
 * with _NOWAIT;
 * -ENOTUNIQ: two owners have the same rows, or caches overlap or are not in order; -ENODATA:
 * between two owners, before the first, or after the last and before a cached row, there
 * are rows that neither an owner nor a cache has; -EINVAL: a field of a cache or of the
 * order is out of range, or one of them is not whole in a region; -EPROTOTYPE: their data
 * types or row bytes differ; -ENOTCONN: no such channel; -EOPNOTSUPP: the peer has
 * connected the channel, and does not listen at the address that it has done so from;
 * -ETIMEDOUT: an owner does not answer; -EPROTO: what it says cannot be; -ECONNREFUSED: it
 * takes no more lanes, or refuses them for a reason that is none of these; -ECONNRESET: its end
 * of the channel is gone; -EPROTONOSUPPORT: its wire version; -EXDEV: the lanes would go over
 * another device; -EHOSTUNREACH, -ENETUNREACH: no way to it; -ENOMEM: here or there; -EIO: the
 * device makes no queue pair now; -EDQUOT: the RDMA cgroup allows the lanes no more; -EUSERS: as
 * for TABLE_EXPORT; -EINTR.
 */
struct rdmatensor_table_open {
	__u32 size;
	__u32 flags;
#define RDMATENSOR_TABLE_ORDER (1 << 0)
#define RDMATENSOR_TABLE_ORDER32 (1 << 1)
#define RDMATENSOR_TABLE_NOWAIT (1 << 2)
	__aligned_u64 name_uptr;
	__u32 name_len;
	__u32 nr_channels;
	__aligned_u64 channels_uptr;
	__aligned_u64 caches_uptr;
	__u32 nr_caches;
	__u32 order_pool_id;
	__aligned_u64 order_offset;
	__aligned_u64 order_nr;
	__u32 timeout_ms;
	__u32 data_type;
	__aligned_u64 out_rows;
	__aligned_u64 out_row_bytes;
	__u32 out_table;
	__u32 __reserved;
	char cause[256];
};

#define RDMATENSOR_TABLE_OPEN _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_TABLE_OPEN)

/**
 * struct rdmatensor_table_close - ioctl(RDMATENSOR_TABLE_CLOSE)
 * @size: sizeof(struct rdmatensor_table_close)
 * @table: from TABLE_EXPORT or TABLE_OPEN
 *
 * Of an export: when it returns no peer can read the rows any more; gathers that
 * want them end with -ESTALE. Of an opened table: gathers of it that are in flight
 * go on to their end. -ENOENT: no such table.
 */
struct rdmatensor_table_close {
	__u32 size;
	__u32 table;
};

#define RDMATENSOR_TABLE_CLOSE _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_TABLE_CLOSE)

/**
 * struct rdmatensor_step_abort - ioctl(RDMATENSOR_STEP_ABORT)
 * @size: sizeof(struct rdmatensor_step_abort)
 * @status: a negative errno, -4095..-1, that everything of the step ends with; not -EAGAIN, by
 *          which SUBMIT says that the ring is full
 * @step_id: the step
 * @text_uptr: text that goes with it, to peers too, as that of a failed tensor; may be 0
 * @text_len: its length in bytes, at most RDMATENSOR_STATUS_TEXT_MAX
 * @__reserved: must be 0
 *
 * Ends every published tensor, every fetch and every waiting request of the
 * step: peers' fetches by ERROR_STATUS, own fetches by CANCEL. Requests and
 * publishes of the step that come later meet the same status, as long as the
 * step is among the last 64 that this context aborted. A tensor published with
 * uses 0 needs its WITHDRAW as before. This context does not offer it while the step is among
 * the 64; if this context has published it, no context of the domain offers it again. What it has
 * published of the step in a generation that is still hidden is withdrawn, without an entry.
 * The call waits for that, behind generations of the domain that were withdrawn before: when it
 * returns nothing uses that memory any more, and the process may use it again.
 */
struct rdmatensor_step_abort {
	__u32 size;
	__s32 status;
	__s64 step_id;
	__aligned_u64 text_uptr;
	__u32 text_len;
	__u32 __reserved;
};

#define RDMATENSOR_STEP_ABORT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_STEP_ABORT)

/**
 * struct rdmatensor_status_text - ioctl(RDMATENSOR_STATUS_TEXT)
 * @size: sizeof(struct rdmatensor_status_text)
 * @text_id: of an entry with RDMATENSOR_CQE_MORE
 * @text_uptr: where the text goes to
 * @text_len: in: room there, in bytes; out: the whole text's length. The lesser of both is
 *         written
 * @__reserved: must be 0
 *
 * The text of a fetch that failed, from its beginning, which the entry has. It may be asked
 * for any number of times, as long as it is among the last RDMATENSOR_STATUS_TEXTS of the
 * context: fetches that end one after the other with the same text have it in common.
 * -ENOENT: it is not, or never was.
 */
struct rdmatensor_status_text {
	__u32 size;
	__u32 text_id;
	__aligned_u64 text_uptr;
	__u32 text_len;
	__u32 __reserved;
};

#define RDMATENSOR_STATUS_TEXT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_STATUS_TEXT)

/**
 * enum rdmatensor_opcode - operations of SUBMIT
 *
 * @RDMATENSOR_OP_PUBLISH: offer the tensor at (pool_id, offset, tensor_bytes)
 *     under (name, step_id). Its region must lie inside one region of the pool
 *     that the process holds, and must not overlap the destination of a fetch.
 *     The process leaves the bytes alone until the entry RDMATENSOR_CQE_PUBLISH
 *     says that the buffer is free, which comes after @uses deliveries (result
 *     0), a WITHDRAW (-ECANCELED) or a STEP_ABORT (the errno that it names).
 *     With uses 0 it is offered until it is withdrawn, makes no entry of its own
 *     and holds no room in the ring; it belongs to the context's domain then: all
 *     contexts of the domain offer it, after what each offers itself under that name
 *     and step, it stays when the context ends, and any of them can withdraw it.
 *     -EEXIST: (name, step_id) is offered already, by this context or by its domain.
 *
 *     With RDMATENSOR_OP_COPY the tensor is copied to a tensor buffer of the kernel's
 *     before SUBMIT returns, and is delivered from there: its memory is the process's
 *     again, and the entry, if @uses is not 0, is in the ring, with result 0; how the
 *     tensor ends is told by none. The buffer is kept under the name for the next step,
 *     whose tensor finds it there if it has the same number of bytes. It counts
 *     as a pool does (see RDMATENSOR_POOL_CREATE), and no peer can reach it. One
 *     that serves no tensor is freed when another tensor or a pool finds no memory, when
 *     START's max_pools buffers are there, or with the domain; that of a tensor that is
 *     withdrawn, by that. -ENOBUFS: max_pools buffers have a tensor that is not delivered
 *     yet; -ENOMEM, -EOVERFLOW, -EINTR: as for RDMATENSOR_POOL_CREATE; -ENODEV: the
 *     device was removed.
 *
 *     With RDMATENSOR_OP_STRIDES the tensor is a view: its elements lie at the distances
 *     @strides_uptr from (pool_id, offset) on, which is the first one's place, and any bytes may
 *     lie between them. It is read in place, and to a receiver it is as any other. All from the
 *     first element to the last has to lie inside one region, and @offset may be any. Whether the
 *     elements of two strided tensors or destinations overlap is not looked at. -ERANGE:
 *     @nr_strides is not @ndims, a dim is longer than its @most, the tensor is opaque, or it would
 *     end beyond 2^63 - 1; -EINVAL: elements may overlap: each stride has to reach over all that
 *     the lesser ones do; -E2BIG: more than RDMATENSOR_RUNS_MAX runs of bytes that lie together.
 *
 *     With RDMATENSOR_OP_COPY too the CPU collects them: then they may overlap, a stride of 0
 *     repeats an element, and there may be any number of runs.
 *
 *     With RDMATENSOR_OP_GENERATION, and @uses 0, the tensor is hidden, and becomes visible with
 *     all others of its generation, which are those of the same @step_id and group, by a REVEAL. A
 *     group is any number, in @target: of a model, say, whose generations take each other's place.
 *     What is hidden is not matched and not listed; its memory is the kernel's all the same. If
 *     the context ends before the REVEAL, or aborts the step, it is withdrawn with all the others
 *     that are hidden. -EALREADY: that generation
 *     is visible; -EBUSY: another context of the domain fills it; -ENOSPC: the domain has
 *     RDMATENSOR_GENERATIONS_MAX that are not over
 * @RDMATENSOR_OP_WITHDRAW: take the tensor back. An entry RDMATENSOR_CQE_WITHDRAW
 *     comes when nothing reads its buffer any more. Where two are offered, as when one was
 *     published while a fetch that then failed had the other, it takes the later one; with
 *     a @target that is not 0 it takes the one whose PUBLISH, with @uses not 0, had that as its
 *     user_data, the latest if there are several, and no other. With
 *     RDMATENSOR_OP_QUIET there is no such entry, and no room in the ring is needed for it:
 *     the tensor's own entry tells, if its PUBLISH makes one. -ENOENT: not offered, or not that
 *     one; -EALREADY: another WITHDRAW waits for it; -EBUSY: it is hidden, and another context
 *     fills its generation.
 *
 *     With RDMATENSOR_OP_GENERATION it takes all tensors of the generation (@target, @step_id)
 *     back: one that is visible, of whatever context of the domain, or this context's own that is
 *     hidden, which may be filled anew then; the operation has no name.
 *     -ENOENT: there is none, or another one has taken its place; -EBUSY: another context fills it
 * @RDMATENSOR_OP_FETCH: have the tensor (name, step_id) of the peer at @channel
 *     written to (pool_id, offset); or, with RDMATENSOR_OP_ALLOC, to a region
 *     that is allocated in pool_id when the size is known and that the process
 *     frees with FREE, if the entry has 0 as its result and has bytes: else there is none.
 *     An entry RDMATENSOR_CQE_FETCH ends it, exactly once. -EACCES: @channel
 *     has a peer, and peers must not write to the pool (enum rdmatensor_pool_peers).
 *
 *     With RDMATENSOR_OP_KEEP the peer remembers the destination under the name: the next
 *     such request of the name on the channel, if it has the same destination and the tensor
 *     the same meta-data, is short: no address and no keys. It is given in each operation
 *     all the same, and another one, or meta-data that have changed, are told again. Nothing
 *     is written to it but by a fetch that is in flight, as without the flag. A peer
 *     remembers 1024 names of a channel, in 512 KiB at most, and is told of others each time;
 *     so is one that does not know of this, and in data-validation and strict mode. A loopback
 *     fetch has nothing to tell.
 *
 *     With RDMATENSOR_OP_SLICE a part of the tensor comes instead of all of it: of its first @ndims
 *     dims the ranges at @dims_uptr, an array of struct rdmatensor_range, the slowest first, and
 *     all of the others; or, with @ndims 0, one range of the content's bytes, which is all that an
 *     opaque tensor has. The part lies at the destination without gaps, and @bytes and the entry
 *     are the part's: the ranges' lengths as its shape, a range of bytes as RDMATENSOR_DT_UINT8
 *     with one dim. Only its bytes cross the wire, and it counts as a delivery
 *     of the tensor. Of a dead tensor the entry is as without the flag. The peer's device collects
 *     the part, a few runs of bytes that lie together with each RDMA write: runs of less than a
 *     KiB or so cost more than their bytes. A tensor that has no such part ends the fetch with
 *     -ERANGE, and is not used up by it. -EOPNOTSUPP: the peer's module knows no slices; -EINVAL:
 *     more than RDMATENSOR_DIMS_MAX ranges, one that ends beyond 2^63 - 1, or RDMATENSOR_OP_KEEP
 *     or RDMATENSOR_OP_SHARE too.
 *
 *     With RDMATENSOR_OP_STRIDES what comes does not lie together at the destination: each element
 *     of the tensor, or of its slice, goes to the distances @strides_uptr from the destination's
 *     beginning on. Only these bytes are written, and the process may use those in between; @bytes
 *     is all from the first element to the last. Nothing is written if a dim has more elements
 *     than @most of it, or there are more @bytes (-EMSGSIZE), or if they are not of @data_type
 *     (-EINVAL). The peer's device writes each run of bytes that lies together here by an RDMA
 *     write of its own: runs of less than a few KiB cost more than their bytes, and with more than
 *     RDMATENSOR_RUNS_MAX of them the fetch ends with -E2BIG, but if it has a proxy, which the CPU
 *     copies from. The fetch ends with -ERANGE if @nr_strides is not the number of dims that come
 *     (a range of bytes has one) or the tensor is opaque, and with -EINVAL if elements would
 *     overlap: each stride has to reach over all that the lesser ones do, in any order of the
 *     dims. In strict mode the peer has keys for what lies between, too. -EOPNOTSUPP: the peer's
 *     module knows no strides; -EINVAL: more than RDMATENSOR_DIMS_MAX of them, or one beyond 2^63
 *     - 1.
 *
 *     With RDMATENSOR_OP_PROXY the destination may also be what a peer cannot write: a place in
 *     a pool that peers must not write to, or whose keys are too many for a message; or, with
 *     pool_id 0, memory of the process that is in no pool: @offset is the address of its first
 *     byte, any. A region of @proxy_pool_id stands in for it: it is allocated when the size is
 *     known, written by the peer, copied to the destination when all has come (and its checksum,
 *     if it has one, is right), and freed before the entry is there. The entry has pool_id
 *     and offset as the operation has them. Where the peer can write the destination it does,
 *     and nothing is copied; nor is a region allocated for a loopback fetch. Once the content has
 *     come it is copied, and a CANCEL or the deadline is too late. The destination is the
 *     kernel's until the entry, and a fetch that has failed may have written to it.
 *     Memory at an address is pinned before SUBMIT returns, all the pages that @bytes touch,
 *     until the fetch has ended: they are locked memory as those of RDMATENSOR_POOL_REGISTER,
 *     with its errors and its rules for what the process may do with the addresses meanwhile;
 *     -EFAULT, -EACCES, -EOPNOTSUPP (a shared mapping of a file that is written back, a
 *     device's memory), -ENOMEM. -EACCES: peers must not write to @proxy_pool_id, or the pool of
 *     the destination is read-only; -EINVAL: no such pool, as for PUBLISH. The entry of a fetch
 *     has -ENOSPC if @proxy_pool_id has no room for the tensor: it needs room for all fetches in
 *     flight that name it, which do not wait for each other, and a pool that was registered or
 *     imported has none before its region is freed; -EMSGSIZE, with a text, if the keys of that
 *     region are too many as well; and -EOPNOTSUPP if the CPU cannot reach either of the two
 *     (RDMATENSOR_IMPORTED_UNREACHABLE). Only the bytes of the destination are written: others of
 *     its first and last page stay the process's, which may use them meanwhile. Whether memory at
 *     an address overlaps another destination, or memory of a pool, is not looked at.
 *
 *     With RDMATENSOR_OP_SHARE, of RDMATENSOR_CHANNEL_SELF, nothing is copied: the entry
 *     has pool and offset of the published tensor itself, and RDMATENSOR_CQE_SHARED. It
 *     counts as being read until RELEASE: till then its publisher leaves it alone, and so
 *     does who has fetched it, for others may read it too. Of what is not published
 *     to be shared it ends with -EOPNOTSUPP, and that is still published. A dead or an
 *     empty tensor ends it like any other fetch, and there is nothing to release. -EAGAIN:
 *     RDMATENSOR_SHARES_MAX are not released, or asked for.
 *
 *     With RDMATENSOR_OP_NEWEST the fetch is of the newest step from @step_id on that is offered
 *     when the request comes to the peer, or, if there is none, of the first one that is
 *     offered then; the entry's step_id says which. It costs one round trip more than a step whose
 *     meta-data are known, and no step's end by STEP_ABORT here ends it. Not with
 *     RDMATENSOR_OP_KEEP.
 *
 *     With RDMATENSOR_OP_NOWAIT a fetch of what is not offered when the request comes to the peer
 *     ends with -ENOENT, after one round trip. For both -EOPNOTSUPP: the peer's module knows
 *     neither.
 *     A fetch of a step in whose place a newer generation of the name is visible ends with -ESTALE,
 *     and with that one's step in the text, whether it waits or not; so does one of the step that
 *     a visible generation has gone back from, for the last 8 times that its group did. Others are
 *     waited for: steps, names that the visible generation has not, one that was withdrawn
 * @RDMATENSOR_OP_CANCEL: end the fetches, gathers and lists whose user_data is @target, with
 *     -ECANCELED unless their content is there already. Their entries come when
 *     the peer can no longer write, or, of a loopback fetch, this side's copy has stopped, which
 *     may be in the middle of the content. -ENOENT: there are none
 * @RDMATENSOR_OP_GATHER: have the rows @ids_uptr of the table @table written to
 *     (pool_id, offset), in the order of the ids. An entry RDMATENSOR_CQE_GATHER ends
 *     it, exactly once, and until then the process leaves ids and destination alone.
 *     Every id is looked at before anything is read: one that the table has not is
 *     -ERANGE, with its position. CANCEL and the deadline end it as a fetch
 * @RDMATENSOR_OP_FREE: give the region of pool_id that begins at @offset back.
 *     -EBUSY: a tensor in it is offered or being fetched, or rows or a list are written to it
 * @RDMATENSOR_OP_RELEASE: release what a fetch with RDMATENSOR_OP_SHARE has got: @target is
 *     the entry's share_id. The publisher's entry, or that of its WITHDRAW, comes when all
 *     have done so and no peer is being served. What an aborted step has shared is given
 *     back like all else; at the last close the kernel does it. -ENOENT: nothing that was
 *     not released
 * @RDMATENSOR_OP_LIST: have what @channel's peer, or with RDMATENSOR_CHANNEL_SELF this context,
 *     offers under names that begin with the @name_len bytes at @name_uptr, which may be none,
 *     described at (pool_id, offset): one struct rdmatensor_list_entry behind the other, as many as
 *     @bytes have room for, from behind @target on, which is 0 at first. Those with a number of
 *     uses come first, those that last until they are withdrawn behind them, both in the order in
 *     which the peer came to know their names, by a publication or by a request. An entry
 *     RDMATENSOR_CQE_LIST ends it. A name and step that is offered all the time from
 *     the first LIST to the last is told exactly once; what comes or goes meanwhile may be told or
 *     not, and what is published again may be told again. Requests that wait, tensors that are
 *     used up and tables are not told. The CPU writes the description: any pool
 *     will do that it can reach and that is not read-only; in one that peers can write
 *     (RDMATENSOR_POOL_PEERS_WRITE) they can change it while it is read. -EOPNOTSUPP: the peer's
 *     module knows no LIST, or the pool cannot be reached; -EACCES: the pool is read-only;
 *     -EINVAL: @bytes is 0, or @offset is not aligned, or as for FETCH; -ENOTCONN: as for FETCH.
 *     The operation ends with -EACCES if the peer does not let itself be listed (START's
 *     list_mode), with -EMSGSIZE if not even the first entry has room:
 *     RDMATENSOR_LIST_ENTRY_MAX bytes are enough for any. CANCEL and the deadline end it at once;
 *     without a deadline a peer can answer for ever. A cursor is of one life of the peer: after a
 *     restart of it begin anew
 * @RDMATENSOR_OP_REVEAL: make all tensors of the generation (@target, @step_id) visible, and end
 *     the visible generation of that group, if there is one, in the same moment: who asks for the
 *     newest step of names of both gets tensors of the one or of the other. What reads the former
 *     one goes on, its other tensors are taken back, and an entry RDMATENSOR_CQE_REVEAL, of the
 *     revealed step, comes when nothing reads them any more: their memory is the
 *     process's again then. Without a former one it comes at once. With RDMATENSOR_OP_QUIET there
 *     is none. The former one may be of any context of the domain, and of a newer step: so one
 *     goes back to an older one. A number that comes back must have the same content, for a reader
 *     may have some of it already. What it costs to make them visible does not depend on their
 *     number. -ENOENT: this context has published nothing hidden for it, or it is visible already
 */
enum rdmatensor_opcode {
	RDMATENSOR_OP_PUBLISH,
	RDMATENSOR_OP_WITHDRAW,
	RDMATENSOR_OP_FETCH,
	RDMATENSOR_OP_CANCEL,
	RDMATENSOR_OP_FREE,
	RDMATENSOR_OP_GATHER,
	RDMATENSOR_OP_RELEASE,
	RDMATENSOR_OP_LIST,
	RDMATENSOR_OP_REVEAL,
};

/* To the end, whatever that is */
#define RDMATENSOR_RANGE_REST (~(__u64)0)

/**
 * struct rdmatensor_range - what a slice takes of a dim, or of a content
 * @start: first element, or byte
 * @length: how many; 0 is allowed; RDMATENSOR_RANGE_REST: all from @start on
 */
struct rdmatensor_range {
	__rdmatensor_dim start;
	__rdmatensor_dim length;
};

/* Runs of bytes that lie together, of a strided tensor or destination: each is work for a device */
#define RDMATENSOR_RUNS_MAX 65536

/**
 * struct rdmatensor_stride - where the elements of a dim lie, and how many have a place
 * @bytes: from an element to the next one, up to 2^63 - 1
 * @most: elements that have a place, at least those that there are; RDMATENSOR_RANGE_REST: any
 *         number
 */
struct rdmatensor_stride {
	__rdmatensor_dim bytes;
	__rdmatensor_dim most;
};

/**
 * struct rdmatensor_op - one operation
 * @opcode: enum rdmatensor_opcode
 * @flags: RDMATENSOR_OP_ALLOC (FETCH): allocate the destination;
 *         RDMATENSOR_OP_SHARE (PUBLISH): a loopback fetch may have the tensor itself;
 *         (FETCH): so it wants, and names no pool, offset and bytes;
 *         RDMATENSOR_OP_IDS32 (GATHER): ids are __u32, not __u64;
 *         RDMATENSOR_OP_DEAD (PUBLISH): a dead tensor: meta-data, no content;
 *         RDMATENSOR_OP_FAILED (PUBLISH): there is no tensor; requests are
 *         answered by @status and the text;
 *         RDMATENSOR_OP_COPY (PUBLISH): copy the tensor, so that its memory is free at once;
 *         RDMATENSOR_OP_QUIET (WITHDRAW): see there;
 *         RDMATENSOR_OP_KEEP (FETCH without _ALLOC): the next fetches of the name have the
 *         same destination;
 *         RDMATENSOR_OP_PROXY (FETCH without _ALLOC, _SHARE): see there;
 *         RDMATENSOR_OP_SLICE (FETCH without _KEEP, _SHARE): a part of the tensor;
 *         RDMATENSOR_OP_NEWEST (FETCH without _KEEP): the newest step from @step_id on;
 *         RDMATENSOR_OP_NOWAIT (FETCH): what is not offered is an error;
 *         RDMATENSOR_OP_GENERATION (PUBLISH with @uses 0): hidden until a REVEAL; (WITHDRAW): all
 *         of a generation;
 *         RDMATENSOR_OP_STRIDES (PUBLISH without _SHARE, FETCH without _ALLOC, _KEEP, _SHARE): its
 *         elements do not lie together;
 *         RDMATENSOR_OP_QUIET (REVEAL): as for WITHDRAW
 * @channel: FETCH, LIST: the peer, RDMATENSOR_CHANNEL_SELF: this context
 * @user_data: returned in the entry
 * @name_uptr: PUBLISH, WITHDRAW, FETCH: the tensor's name, any bytes; LIST: a prefix of names
 * @name_len: its length, 1..RDMATENSOR_NAME_MAX; LIST: from 0 on
 * @pool_id: PUBLISH, FETCH, FREE, GATHER, LIST; 0 (FETCH with _PROXY): @offset is an address
 * @step_id: PUBLISH, WITHDRAW, FETCH, REVEAL
 * @offset: PUBLISH, FETCH without _ALLOC: in a pool, in bytes; a multiple of
 *         RDMATENSOR_REGION_ALIGN in a pool of kernel pages, anything in one that was
 *         registered or imported, and with _STRIDES; FREE; GATHER: as FETCH; LIST: as FETCH, but a
 *         multiple of 8 in those too
 * @bytes: PUBLISH: the tensor's; FETCH: the destination's, 0 is allowed. A
 *         fetch with _ALLOC: the longest tensor to allocate for, 0: any. GATHER: the
 *         destination's, at least @nr_ids rows. LIST: the destination's
 * @deadline_ns: FETCH, GATHER, LIST: absolute CLOCK_MONOTONIC time after which it ends with
 *         -ETIMEDOUT; 0: never. It is cancelled then: its entry comes as soon as nothing
 *         can write to its destination any more (see START's cancel_ms, @stripe_bytes), and has
 *         the content if that came before. One that has passed is tried all the same
 * @data_type: PUBLISH: enum rdmatensor_data_type; FETCH with _STRIDES: of the elements that have a
 *         place, 0: any
 * @ndims: PUBLISH: dims of the shape, 0 is a scalar; FETCH with _SLICE: dims that have a range,
 *         0: there is one, of bytes
 * @dims_uptr: PUBLISH: array of @ndims __u64; FETCH with _SLICE: array of struct rdmatensor_range
 * @uses: PUBLISH: deliveries, after which the tensor is used up; 1 as in
 *         TensorFlow, n for a broadcast, 0: until withdrawn
 * @status: PUBLISH with _FAILED: a negative errno, -4095..-1
 * @text_uptr: PUBLISH with _FAILED: text for the peer, may be 0. Whoever reads it finds
 *         spaces where it has control characters. One that is longer than what the peer's
 *         slots leave is cut, and ends in "...": slots of 2048 bytes have room for all, those
 *         of 1024 for 960 less the name's. A peer of before there was
 *         RDMATENSOR_STATUS_TEXT_MAX gets RDMATENSOR_TEXT_MAX bytes
 * @text_len: its length, at most RDMATENSOR_STATUS_TEXT_MAX
 * @strides_uptr: PUBLISH, FETCH with _STRIDES: array of @nr_strides struct rdmatensor_stride, the
 *         slowest dim's first
 * @nr_strides: its length: PUBLISH: @ndims; FETCH: the dims of what comes
 * @__reserved: must be 0
 * @target: CANCEL: user_data of the fetches, gathers and lists; WITHDRAW: that of the publication
 *         that is meant, 0: any; RELEASE: share_id; LIST: 0, or the cursor of an entry, to go on
 *         behind it; REVEAL, PUBLISH and WITHDRAW with _GENERATION: the group
 * @ids_uptr: GATHER: array of ids, in any memory of the process. It is read before SUBMIT
 *         returns, and is the process's again then
 * @nr_ids: GATHER: its length, 0 is allowed
 * @table: GATHER: from TABLE_OPEN
 * @proxy_pool_id: FETCH with _PROXY: the pool that a region is allocated in, which peers write;
 *         it may be that of the destination
 *
 * Fields that an operation does not name must be 0.
 */
struct rdmatensor_op {
	__u16 opcode;
	__u16 flags;
#define RDMATENSOR_OP_ALLOC (1 << 0)
#define RDMATENSOR_OP_DEAD (1 << 1)
#define RDMATENSOR_OP_FAILED (1 << 2)
#define RDMATENSOR_OP_IDS32 (1 << 3)
#define RDMATENSOR_OP_COPY (1 << 4)
#define RDMATENSOR_OP_KEEP (1 << 5)
#define RDMATENSOR_OP_SHARE (1 << 6)
#define RDMATENSOR_OP_QUIET (1 << 7)
#define RDMATENSOR_OP_PROXY (1 << 8)
#define RDMATENSOR_OP_SLICE (1 << 9)
#define RDMATENSOR_OP_NEWEST (1 << 10)
#define RDMATENSOR_OP_NOWAIT (1 << 11)
#define RDMATENSOR_OP_GENERATION (1 << 12)
#define RDMATENSOR_OP_STRIDES (1 << 13)
	__u32 channel;
	__aligned_u64 user_data;
	__aligned_u64 name_uptr;
	__u32 name_len;
	__u32 pool_id;
	__s64 step_id;
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__aligned_u64 deadline_ns;
	__u32 data_type;
	__u32 ndims;
	__aligned_u64 dims_uptr;
	__u32 uses;
	__s32 status;
	union {
		__aligned_u64 text_uptr;
		__aligned_u64 strides_uptr;
	};
	union {
		__u32 text_len;
		__u32 nr_strides;
	};
	__u32 __reserved;
	__aligned_u64 target;
	__aligned_u64 ids_uptr;
	__aligned_u64 nr_ids;
	__u32 table;
	__u32 proxy_pool_id;
};

/**
 * struct rdmatensor_list_entry - a tensor that is offered, as LIST describes it
 * @bytes: of this description: the next one begins so many bytes behind it, a multiple of 8
 * @status: 0; a negative errno: there is no tensor, and a fetch ends with this
 * @cursor: LIST's @target, to go on behind it
 * @step_id: its step
 * @tensor_bytes: its length in bytes
 * @uses: deliveries that are left, 0: until it is withdrawn
 * @data_type: enum rdmatensor_data_type; RDMATENSOR_DT_INVALID with @status
 * @name_len: bytes of the name
 * @ndims: dims of its shape
 * @flags: RDMATENSOR_LIST_DEAD: the tensor is dead, there is no content
 * @__reserved: 0
 *
 * Behind it: @ndims __u64, its shape; the name, any bytes, and at least one 0.
 */
struct rdmatensor_list_entry {
	__u32 bytes;
	__s32 status;
	__aligned_u64 cursor;
	__s64 step_id;
	__aligned_u64 tensor_bytes;
	__u32 uses;
	__u16 data_type;
	__u16 name_len;
	__u8 ndims;
	__u8 flags;
#define RDMATENSOR_LIST_DEAD (1 << 0)
	__u8 __reserved[6];
};

/* Longest of them: all dims, and the longest name */
#define RDMATENSOR_LIST_ENTRY_MAX (48 + 8 * RDMATENSOR_DIMS_MAX + RDMATENSOR_NAME_MAX + 8)

/**
 * struct rdmatensor_submit - ioctl(RDMATENSOR_SUBMIT)
 * @size: sizeof(struct rdmatensor_submit)
 * @op_size: sizeof(struct rdmatensor_op), the stride of the array
 * @ops_uptr: array of operations
 * @nr_ops: its length, at most RDMATENSOR_SUBMIT_MAX; 0 is allowed
 * @wait_nr: after submitting, wait until this many entries are in the ring that
 *         the process has not consumed; at most the ring's entries
 * @deadline_ns: absolute CLOCK_MONOTONIC end of the wait; 0: no end
 * @out_done: out: operations taken, from the first
 * @out_error: out: 0, or the negative errno of operation number @out_done,
 *         which and whose successors were not taken
 * @flags: RDMATENSOR_SUBMIT_HEAD: wait for @wait_head, and not for @wait_nr,
 *         which is 0 then
 * @wait_head: wait until the ring's head has come to it, or is past it by less
 *         than 2^31. What other threads consume meanwhile does not matter, as
 *         it does for @wait_nr: who has looked at all entries up to some head
 *         waits for that plus 1. 0 without the flag
 *
 * Operations are taken in order. -EAGAIN as an operation's error: the ring has
 * no room for one more completion; reap and submit again. -EDQUOT of a FETCH
 * in strict mode: rdma.max of the RDMA cgroup allows its keys no more. The call returns 0
 * if any operation was taken (look at @out_error), or none was asked for;
 * else that error. A wait is skipped when an operation failed; its end by
 * deadline is -ETIME and by a signal -EINTR, with @out_done valid.
 */
struct rdmatensor_submit {
	__u32 size;
	__u32 op_size;
	__aligned_u64 ops_uptr;
	__u32 nr_ops;
	__u32 wait_nr;
	__aligned_u64 deadline_ns;
	__u32 out_done;
	__s32 out_error;
	__u32 flags;
#define RDMATENSOR_SUBMIT_HEAD (1 << 0)
	__u32 wait_head;
};

#define RDMATENSOR_SUBMIT _IO(RDMATENSOR_IOC_TYPE, RDMATENSOR_CMD_SUBMIT)

/**
 * enum rdmatensor_cqe_type - what an entry of the ring tells
 * @RDMATENSOR_CQE_FETCH: a fetch has ended
 * @RDMATENSOR_CQE_PUBLISH: a published tensor's buffer is free
 * @RDMATENSOR_CQE_WITHDRAW: a withdrawn tensor's buffer is free
 * @RDMATENSOR_CQE_CHANNEL_UP: a peer has connected: @channel, and its worker
 *         name as the text. CONNECT's own channels make no such entry
 * @RDMATENSOR_CQE_CHANNEL_DOWN: a channel has ended, @result is why. Its place among this
 *         side's max_channels is free; the peer may count its own end for a while yet. What
 *         the channel carried ends by entries of its own, which may come before it or after it
 * @RDMATENSOR_CQE_GATHER: a gather has ended
 * @RDMATENSOR_CQE_LIST: a list has ended
 * @RDMATENSOR_CQE_REVEAL: the buffers of the generation that was replaced are free
 */
enum rdmatensor_cqe_type {
	RDMATENSOR_CQE_FETCH = 1,
	RDMATENSOR_CQE_PUBLISH,
	RDMATENSOR_CQE_WITHDRAW,
	RDMATENSOR_CQE_CHANNEL_UP,
	RDMATENSOR_CQE_CHANNEL_DOWN,
	RDMATENSOR_CQE_GATHER,
	RDMATENSOR_CQE_LIST,
	RDMATENSOR_CQE_REVEAL,
};

/**
 * struct rdmatensor_cqe - one entry of the completion ring
 * @user_data: of the operation, or of CONNECT
 * @result: 0 or a negative errno. FETCH: -EMSGSIZE: the tensor is longer than
 *         the destination, its meta-data is here; -ENOSPC: it found no room in
 *         the pool, or that of its proxy; -ETIMEDOUT, -ECANCELED; -EBADMSG: checksum; -ECONNRESET,
 *         -ESHUTDOWN, -ENODEV: the channel ended; -EDQUOT: the channel's keys are used up (strict
 *         mode); else the publisher's status.
 *         FETCH with _SLICE: -ERANGE: a part that the tensor has not;
 *         FETCH with _NOWAIT: -ENOENT; of a generation that has been replaced: -ESTALE;
 *         GATHER: -ERANGE: an id that the table has not; -ESTALE: an owner has taken its
 *         partition back; -EFAULT: the ids cannot be read; -ETIMEDOUT, -ECANCELED;
 *         -ECONNRESET, -ESHUTDOWN, -ENODEV: an owner could not be read any more; an error of
 *         TABLE_OPEN that says why its lanes could not be connected again. LIST: see there
 * @type: enum rdmatensor_cqe_type
 * @flags: RDMATENSOR_CQE_META: meta-data members are valid;
 *         RDMATENSOR_CQE_TEXT: @text is valid instead of @dims;
 *         RDMATENSOR_CQE_DEAD: the tensor is dead, there is no content;
 *         RDMATENSOR_CQE_VALIDATED: the content's checksum was right;
 *         RDMATENSOR_CQE_MORE: @text is the beginning of a longer one, see @text_id;
 *         RDMATENSOR_CQE_SHARED: the tensor is the published one itself, see @share_id
 * @step_id: of the operation; of a FETCH with _NEWEST that found a tensor: that one's
 * @tensor_bytes: the tensor's length in bytes. GATHER: bytes of all rows; if it failed,
 *         the number of rows that were not delivered. LIST: bytes of all descriptions
 * @offset: FETCH, GATHER, LIST: where in the pool the tensor is, the rows are; of a gather
 *         that failed, the position in the ids of the first row that was not delivered, or
 *         with -ERANGE of the id that the table has not
 * @pool_id: FETCH, GATHER, LIST: the pool; 0 (RDMATENSOR_OP_PROXY): @offset is an address
 * @channel: the channel
 * @data_type: enum rdmatensor_data_type
 * @ndims: dims that are valid
 * @text_len: bytes of @text that are valid
 * @checksum: CRC32C of the content, with RDMATENSOR_CQE_VALIDATED
 * @text_id: with RDMATENSOR_CQE_MORE: what RDMATENSOR_STATUS_TEXT wants for the whole text
 * @share_id: with RDMATENSOR_CQE_SHARED: what RELEASE wants. With neither flag both are 0
 * @dims: the shape
 * @text: a status text or worker name, not zero-terminated
 * @cursor: LIST that has not failed: @target of the next one; 0: nothing follows
 */
struct rdmatensor_cqe {
	__aligned_u64 user_data;
	__s32 result;
	__u16 type;
	__u16 flags;
#define RDMATENSOR_CQE_META (1 << 0)
#define RDMATENSOR_CQE_TEXT (1 << 1)
#define RDMATENSOR_CQE_DEAD (1 << 2)
#define RDMATENSOR_CQE_VALIDATED (1 << 3)
#define RDMATENSOR_CQE_MORE (1 << 6)
#define RDMATENSOR_CQE_SHARED (1 << 7)
	__s64 step_id;
	__aligned_u64 tensor_bytes;
	__aligned_u64 offset;
	__u32 pool_id;
	__u32 channel;
	__u32 data_type;
	__u16 ndims;
	__u16 text_len;
	__u32 checksum;
	union {
		__u32 text_id;
		__u32 share_id;
	};
	union {
		__rdmatensor_dim dims[RDMATENSOR_DIMS_MAX];
		char text[RDMATENSOR_TEXT_MAX];
		__aligned_u64 cursor;
	};
};

/* mmap() offset of the completion ring, MAP_SHARED, after START */
#define RDMATENSOR_MMAP_RING 0

/**
 * struct rdmatensor_ring - the first page of the mapped completion ring
 * @head: entries that the kernel has written, modulo 2^32. The process loads it
 *         with acquire order, and reads entry (i & (entries - 1)) for each i
 *         from its tail to it
 * @__pad0: keeps the two indices on cache lines of their own
 * @tail: entries that the process has consumed, modulo 2^32. The process stores
 *         it with release order. The kernel masks what it reads here; a lie
 *         hurts none but the process's own entries
 * @__pad1: as above
 * @entries: capacity, a power of two. Written once
 * @entry_bytes: sizeof(struct rdmatensor_cqe), the stride. Written once
 * @entries_offset: of the first entry, in bytes from the mapping's start
 * @__reserved: 0
 *
 * The mapping is @entries_offset + @entries * @entry_bytes long, rounded up to
 * pages. Map one page first to learn it, or take it from RDMATENSOR_QUERY's
 * ring_entries.
 */
struct rdmatensor_ring {
	__u32 head;
	__u32 __pad0[15];
	__u32 tail;
	__u32 __pad1[15];
	__u32 entries;
	__u32 entry_bytes;
	__u32 entries_offset;
	__u32 __reserved;
};

#endif /* _UAPI_RDMATENSOR_H */
