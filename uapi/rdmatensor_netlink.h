/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The generic-netlink family "rdmatensor": what all contexts of a network namespace are
 * doing, for people and monitors. Nothing is set here.
 *
 * Commands are dumps (NLM_F_DUMP), for CAP_NET_ADMIN, as they show what other processes
 * do; RDMATENSOR_DUMP gives the same messages of one's own contexts to everybody. A dump is of
 * all contexts, or with RDMATENSOR_NL_A_CONTEXT of one; that of domains is of all: -EINVAL with
 * a context. A dump during which something came or went carries NLM_F_DUMP_INTR: ask again.
 *
 * Events are multicast in group "events" to the context's network namespace. To join it
 * takes CAP_NET_ADMIN there, for they show the same: else -EPERM.
 */
#ifndef _UAPI_RDMATENSOR_NETLINK_H
#define _UAPI_RDMATENSOR_NETLINK_H

#define RDMATENSOR_NL_NAME "rdmatensor"
#define RDMATENSOR_NL_VERSION 1
#define RDMATENSOR_NL_EVENTS "events"

/* Buckets of a latency histogram: bucket n has what took less than 2^n us, the last one all else */
#define RDMATENSOR_NL_LATENCY_NR 32
/* Errnos that are counted one by one */
#define RDMATENSOR_NL_ERRORS_NR 134

/**
 * enum rdmatensor_nl_cmd - messages
 * @RDMATENSOR_NL_CMD_CONTEXT_GET: dump of contexts that have been started
 * @RDMATENSOR_NL_CMD_CHANNEL_GET: dump of channels
 * @RDMATENSOR_NL_CMD_POOL_GET: dump of pools
 * @RDMATENSOR_NL_CMD_REQUEST_GET: dump of fetches that have not ended
 * @RDMATENSOR_NL_CMD_TABLE_GET: dump of tables, exported ones and opened ones
 * @RDMATENSOR_NL_CMD_EVENT: something has happened, RDMATENSOR_NL_A_EVENT says what
 * @RDMATENSOR_NL_CMD_DOMAIN_GET: dump of domains, also of those that no context has joined
 * @RDMATENSOR_NL_CMD_TENSOR_GET: dump of tensors that contexts offer, those of their domains
 *         included
 */
enum rdmatensor_nl_cmd {
	RDMATENSOR_NL_CMD_CONTEXT_GET = 1,
	RDMATENSOR_NL_CMD_CHANNEL_GET,
	RDMATENSOR_NL_CMD_POOL_GET,
	RDMATENSOR_NL_CMD_REQUEST_GET,
	RDMATENSOR_NL_CMD_TABLE_GET,
	RDMATENSOR_NL_CMD_EVENT,
	RDMATENSOR_NL_CMD_DOMAIN_GET,
	RDMATENSOR_NL_CMD_TENSOR_GET,
};

/**
 * enum rdmatensor_nl_event - what happened
 * @RDMATENSOR_NL_EVENT_CONTEXT_START: a context has been started
 * @RDMATENSOR_NL_EVENT_CONTEXT_END: it has been closed
 * @RDMATENSOR_NL_EVENT_CHANNEL_UP: both ends have said HELLO
 * @RDMATENSOR_NL_EVENT_CHANNEL_DOWN: it has ended: _ERROR and _TEXT say why
 * @RDMATENSOR_NL_EVENT_PEER_MISBEHAVED: a channel went down, because the peer broke the protocol
 * @RDMATENSOR_NL_EVENT_DEVICE_GONE: the context's RDMA device is being removed
 * @RDMATENSOR_NL_EVENT_REQUEST_TIMEOUT: a fetch's deadline has passed
 * @RDMATENSOR_NL_EVENT_CONNECT_WAITS: a CONNECT waits for a peer that is not up yet, whose
 *         address _ADDR is: for _WAIT_MS at most, because of _ERROR and _TEXT. Told once
 *         for each call; CHANNEL_UP ends it well
 */
enum rdmatensor_nl_event {
	RDMATENSOR_NL_EVENT_CONTEXT_START = 1,
	RDMATENSOR_NL_EVENT_CONTEXT_END,
	RDMATENSOR_NL_EVENT_CHANNEL_UP,
	RDMATENSOR_NL_EVENT_CHANNEL_DOWN,
	RDMATENSOR_NL_EVENT_PEER_MISBEHAVED,
	RDMATENSOR_NL_EVENT_DEVICE_GONE,
	RDMATENSOR_NL_EVENT_REQUEST_TIMEOUT,
	RDMATENSOR_NL_EVENT_CONNECT_WAITS,
};

/**
 * enum rdmatensor_nl_attr - attributes, in the CPU's byte order
 * @RDMATENSOR_NL_A_PAD: fills
 * @RDMATENSOR_NL_A_EVENT: u32, enum rdmatensor_nl_event
 * @RDMATENSOR_NL_A_CONTEXT: u32, id of a context, of this boot
 * @RDMATENSOR_NL_A_PID: u32, who opened it, in the namespace of who asks; events: the
 *         initial one's
 * @RDMATENSOR_NL_A_COMM: string, its command
 * @RDMATENSOR_NL_A_WORKER: string, its name
 * @RDMATENSOR_NL_A_INCARNATION: u64, random number of its life; of a channel: the peer's
 * @RDMATENSOR_NL_A_DEVICE: string, RDMA device; missing: it has gone
 * @RDMATENSOR_NL_A_PORT: u32, its port
 * @RDMATENSOR_NL_A_GID_INDEX: u32, in the port's table
 * @RDMATENSOR_NL_A_GID: 16 bytes
 * @RDMATENSOR_NL_A_MTU: u32, path MTU in bytes
 * @RDMATENSOR_NL_A_LISTEN_PORT: u32, where it listens; missing: nowhere
 * @RDMATENSOR_NL_A_CHOICE: string, what was chosen and by which rule
 * @RDMATENSOR_NL_A_CHANNELS: u32, number of them
 * @RDMATENSOR_NL_A_POOLS: u32, number of them
 * @RDMATENSOR_NL_A_COUNTERS: nest of u64, of type 1 + enum rdmatensor_stat each
 * @RDMATENSOR_NL_A_CHANNEL: u32, id of a channel in its context
 * @RDMATENSOR_NL_A_LATENCY: nest of u64, fetches that ended with their tensor: of type
 *         1 + log2 of their microseconds, rounded up; what is 0 is missing
 * @RDMATENSOR_NL_A_ERRORS: nest of u64, fetches that ended with an error: of type
 *         1 + errno, of type 1 for those beyond the table; what is 0 is missing
 * @RDMATENSOR_NL_A_STATE: u32, enum rdmatensor_channel_state
 * @RDMATENSOR_NL_A_PEER: string, the peer's worker name; empty before its HELLO
 * @RDMATENSOR_NL_A_ADDR: struct sockaddr_in or _in6, the peer's
 * @RDMATENSOR_NL_A_ACTIVE: flag, this end connected it
 * @RDMATENSOR_NL_A_REQUESTS: u32, fetches that have not ended
 * @RDMATENSOR_NL_A_RESPONSES: u32, the peer's requests that have not ended here
 * @RDMATENSOR_NL_A_MSG_SLOTS: u32, the window: control messages that may be unconsumed
 * @RDMATENSOR_NL_A_SENT: u32, control messages sent, modulo 2^32
 * @RDMATENSOR_NL_A_CONSUMED: u32, of those, how many the peer has told that it consumed
 * @RDMATENSOR_NL_A_LANE: nest, one for each queue pair, with what the device says of it
 * @RDMATENSOR_NL_A_QPN: u32, lane: number of the queue pair
 * @RDMATENSOR_NL_A_TIMEOUT: u32, lane: ack timeout is 4.096 us << it
 * @RDMATENSOR_NL_A_RETRY_COUNT: u32, lane
 * @RDMATENSOR_NL_A_RNR_RETRY: u32, lane
 * @RDMATENSOR_NL_A_SL: u32, lane
 * @RDMATENSOR_NL_A_TRAFFIC_CLASS: u32, lane
 * @RDMATENSOR_NL_A_SEND_DEPTH: u32, lane: entries of its send queue
 * @RDMATENSOR_NL_A_RECV_DEPTH: u32, lane: entries of its receive queue
 * @RDMATENSOR_NL_A_POOL: u32, id of a pool in its domain; of a request 0: it has no
 *	destination, or one that is in no pool
 * @RDMATENSOR_NL_A_BYTES: u64, of a pool, of a tensor
 * @RDMATENSOR_NL_A_SEGMENTS: u32, memory regions of a pool
 * @RDMATENSOR_NL_A_USES: u32, what holds a pool: tensors, fetches, contents in flight
 * @RDMATENSOR_NL_A_REQUEST: u32, index of a request on its channel; missing: the fetch is
 *         of a tensor of the context itself
 * @RDMATENSOR_NL_A_REQUEST_STATE: string, as the tracepoint rdmatensor_request_state has it
 * @RDMATENSOR_NL_A_USER_DATA: u64, SUBMIT's
 * @RDMATENSOR_NL_A_STEP: u64, two's complement of the step
 * @RDMATENSOR_NL_A_TENSOR: bytes of its name
 * @RDMATENSOR_NL_A_AGE_NS: u64, time since SUBMIT
 * @RDMATENSOR_NL_A_TABLE: u32, id of a table in its context; its name is _TENSOR
 * @RDMATENSOR_NL_A_EXPORT: flag, it is exported; else it is opened
 * @RDMATENSOR_NL_A_ROW_START: u64, number of the first row
 * @RDMATENSOR_NL_A_ROW_END: u64, number after the last row
 * @RDMATENSOR_NL_A_ROW_BYTES: u32, bytes of a row
 * @RDMATENSOR_NL_A_OWNERS: u32, of an opened table
 * @RDMATENSOR_NL_A_LANES_UP: u32, of an opened table: queue pairs to its owners that are up
 * @RDMATENSOR_NL_A_ERROR: s32, negative errno
 * @RDMATENSOR_NL_A_TEXT: string, why
 * @RDMATENSOR_NL_A_COMP_VECTOR: u32, lane: completion vector of its completion queue
 * @RDMATENSOR_NL_A_READ_LANE: nest, one for each queue pair for READs that is up, as _LANE
 * @RDMATENSOR_NL_A_READS_IN: u32, lane: READs of the peer that it answers at the same time
 * @RDMATENSOR_NL_A_READS_OUT: u32, lane: READs that it has in flight at the same time
 * @RDMATENSOR_NL_A_WAIT_MS: u32, milliseconds for which a CONNECT waits at most
 * @RDMATENSOR_NL_A_PEERS: string, what peers may do with a pool: write, none, read (enum
 *         rdmatensor_pool_peers)
 * @RDMATENSOR_NL_A_MEMORY: string, what a pool is made of: kernel (its own pages), process (the
 *         process's, RDMATENSOR_POOL_REGISTER), dmabuf (another driver's, RDMATENSOR_POOL_IMPORT)
 * @RDMATENSOR_NL_A_READ_ONLY: flag, a pool that nothing writes to
 * @RDMATENSOR_NL_A_UNREACHABLE: flag, a pool whose bytes the CPU cannot reach
 * @RDMATENSOR_NL_A_MR_MODE: string, what the channel's peer can write to here: pool (all pools
 *	that are made for peers to write), strict (destinations of fetches in flight from it)
 * @RDMATENSOR_NL_A_DOMAIN: u32, id of a domain, of this boot: of what is dumped, or what a context
 *	has joined. Pools with the same _DOMAIN and _POOL are one pool
 * @RDMATENSOR_NL_A_CONTEXTS: u32, number of those that have joined a domain
 * @RDMATENSOR_NL_A_LASTING: u32, number of tensors that a domain keeps published (uses 0)
 * @RDMATENSOR_NL_A_DATA_TYPE: u32, enum rdmatensor_data_type of a tensor
 * @RDMATENSOR_NL_A_SHAPE: array of u64, the dims of a tensor; empty: a scalar
 * @RDMATENSOR_NL_A_DELIVERIES: u32, of a tensor that are left; missing: until it is withdrawn
 * @RDMATENSOR_NL_A_DEAD: flag, a tensor without content
 */
enum rdmatensor_nl_attr {
	RDMATENSOR_NL_A_PAD = 1,
	RDMATENSOR_NL_A_EVENT,
	RDMATENSOR_NL_A_CONTEXT,
	RDMATENSOR_NL_A_PID,
	RDMATENSOR_NL_A_COMM,
	RDMATENSOR_NL_A_WORKER,
	RDMATENSOR_NL_A_INCARNATION,
	RDMATENSOR_NL_A_DEVICE,
	RDMATENSOR_NL_A_PORT,
	RDMATENSOR_NL_A_GID_INDEX,
	RDMATENSOR_NL_A_GID,
	RDMATENSOR_NL_A_MTU,
	RDMATENSOR_NL_A_LISTEN_PORT,
	RDMATENSOR_NL_A_CHOICE,
	RDMATENSOR_NL_A_CHANNELS,
	RDMATENSOR_NL_A_POOLS,
	RDMATENSOR_NL_A_COUNTERS,
	RDMATENSOR_NL_A_LATENCY,
	RDMATENSOR_NL_A_ERRORS,
	RDMATENSOR_NL_A_CHANNEL,
	RDMATENSOR_NL_A_STATE,
	RDMATENSOR_NL_A_PEER,
	RDMATENSOR_NL_A_ADDR,
	RDMATENSOR_NL_A_ACTIVE,
	RDMATENSOR_NL_A_REQUESTS,
	RDMATENSOR_NL_A_RESPONSES,
	RDMATENSOR_NL_A_MSG_SLOTS,
	RDMATENSOR_NL_A_SENT,
	RDMATENSOR_NL_A_CONSUMED,
	RDMATENSOR_NL_A_LANE,
	RDMATENSOR_NL_A_QPN,
	RDMATENSOR_NL_A_TIMEOUT,
	RDMATENSOR_NL_A_RETRY_COUNT,
	RDMATENSOR_NL_A_RNR_RETRY,
	RDMATENSOR_NL_A_SL,
	RDMATENSOR_NL_A_TRAFFIC_CLASS,
	RDMATENSOR_NL_A_SEND_DEPTH,
	RDMATENSOR_NL_A_RECV_DEPTH,
	RDMATENSOR_NL_A_POOL,
	RDMATENSOR_NL_A_BYTES,
	RDMATENSOR_NL_A_SEGMENTS,
	RDMATENSOR_NL_A_USES,
	RDMATENSOR_NL_A_REQUEST,
	RDMATENSOR_NL_A_REQUEST_STATE,
	RDMATENSOR_NL_A_USER_DATA,
	RDMATENSOR_NL_A_STEP,
	RDMATENSOR_NL_A_TENSOR,
	RDMATENSOR_NL_A_AGE_NS,
	RDMATENSOR_NL_A_TABLE,
	RDMATENSOR_NL_A_EXPORT,
	RDMATENSOR_NL_A_ROW_START,
	RDMATENSOR_NL_A_ROW_END,
	RDMATENSOR_NL_A_ROW_BYTES,
	RDMATENSOR_NL_A_OWNERS,
	RDMATENSOR_NL_A_LANES_UP,
	RDMATENSOR_NL_A_ERROR,
	RDMATENSOR_NL_A_TEXT,
	RDMATENSOR_NL_A_COMP_VECTOR,
	RDMATENSOR_NL_A_READ_LANE,
	RDMATENSOR_NL_A_READS_IN,
	RDMATENSOR_NL_A_READS_OUT,
	RDMATENSOR_NL_A_WAIT_MS,
	RDMATENSOR_NL_A_PEERS,
	RDMATENSOR_NL_A_MEMORY,
	RDMATENSOR_NL_A_READ_ONLY,
	RDMATENSOR_NL_A_UNREACHABLE,
	RDMATENSOR_NL_A_MR_MODE,
	RDMATENSOR_NL_A_DOMAIN,
	RDMATENSOR_NL_A_CONTEXTS,
	RDMATENSOR_NL_A_LASTING,
	RDMATENSOR_NL_A_DATA_TYPE,
	RDMATENSOR_NL_A_SHAPE,
	RDMATENSOR_NL_A_DELIVERIES,
	RDMATENSOR_NL_A_DEAD,
	/* private: how many there are */
	__RDMATENSOR_NL_A_NR,
};

#define RDMATENSOR_NL_A_MAX (__RDMATENSOR_NL_A_NR - 1)

#endif /* _UAPI_RDMATENSOR_NETLINK_H */
