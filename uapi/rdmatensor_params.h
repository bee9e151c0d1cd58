/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The parameters of a context, in one table. From it are drawn: the module's parameters,
 * which are the defaults of new contexts, and their place in sysfs; the fields of START;
 * the environment variables of the library; the ranges of those options that the tool has
 * for them, its `show params` and `set`; and the tables of Documentation/parameters.md and of
 * rdmatensor-params(7).
 *
 * P(name, default, least, most, kind, set, help, variable, other, unit):
 *  name      of START's field, of the module parameter, of
 *            /sys/module/rdmatensor/parameters/NAME
 *  default   RDMATENSOR_PARAM_AUTO: chosen when a context starts, as @help says;
 *            written "auto"
 *  least     smallest value
 *  most      greatest value
 *  kind      RDMATENSOR_PARAM_POW2: powers of two only; else 0
 *  set       its bit in START's @set, which says that the field is meant whatever its value
 *  help      what it is
 *  variable  in the environment; "": not there
 *  other     another name of it, or NULL: the one that TensorFlow's code read, where
 *            that is not the one that its documentation had
 *  unit      of the value, or ""
 *
 * Beside these there is `device`, a name: RDMA_DEVICE, START's device_name.
 */
#ifndef _UAPI_RDMATENSOR_PARAMS_H
#define _UAPI_RDMATENSOR_PARAMS_H

#define RDMATENSOR_PARAM_AUTO 0xffffffffU
#define RDMATENSOR_PARAM_POW2 1

#define RDMATENSOR_PARAMS(P) \
	P(port, RDMATENSOR_PARAM_AUTO, 1, 255, 0, RDMATENSOR_SET_PORT, \
	  "port of the RDMA device; auto: its first active one", \
	  "RDMA_DEVICE_PORT", NULL, "") \
	P(gid_index, RDMATENSOR_PARAM_AUTO, 0, 255, 0, RDMATENSOR_SET_GID_INDEX, \
	  "index of the port's GID; auto: the first RoCE v2 one with an IPv4 or a global IPv6 address, a link-local one if there is no other; InfiniBand: 0", \
	  "RDMA_GID_INDEX", NULL, "") \
	P(pkey_index, 0, 0, 65535, 0, RDMATENSOR_SET_PKEY_INDEX, \
	  "index of the port's P_Key (InfiniBand)", \
	  "RDMA_QP_PKEY_INDEX", "RDMA_PKEY", "") \
	P(ring_entries, 4096, 16, 1048576, 0, RDMATENSOR_SET_RING_ENTRIES, \
	  "completion ring, rounded up to a power of two: bounds operations in flight, and channels, of which each takes one or two entries", \
	  "RDMATENSOR_RING_ENTRIES", NULL, "entries") \
	P(queue_depth, 1024, 16, 16384, 0, RDMATENSOR_SET_QUEUE_DEPTH, \
	  "work requests of a lane's send queue, at least 2 * msg_slots + 8; the receive queue takes what can arrive, at most so many: 2 * msg_slots + 1 and 256 requests on the first lane, the requests and 1 on others", \
	  "RDMA_QP_QUEUE_DEPTH", "RDMA_QUEUE_DEPTH", "entries") \
	P(timeout, 14, 1, 31, 0, RDMATENSOR_SET_TIMEOUT, \
	  "ack timeout of a lane; soft-RoCE, which waits a quarter of it, is given two more", \
	  "RDMA_QP_TIMEOUT", "RDMA_TIMEOUT", "4.096 us << n") \
	P(retry_count, 7, 0, 7, 0, RDMATENSOR_SET_RETRY_COUNT, \
	  "transport retries; soft-RoCE treats 7 as infinite, so 6 is used there", \
	  "RDMA_QP_RETRY_COUNT", "RDMA_RETRY_CNT", "") \
	P(rnr_retry, 7, 0, 7, 0, RDMATENSOR_SET_RNR_RETRY, \
	  "receiver-not-ready retries; 7: infinite; 0 works as well, because receives are accounted for", \
	  "RDMATENSOR_RNR_RETRY", NULL, "") \
	P(sl, RDMATENSOR_PARAM_AUTO, 0, 7, 0, RDMATENSOR_SET_SL, \
	  "service level of what this side sends; auto: what the path's resolution gives, or what the connecting peer asks for", \
	  "RDMA_QP_SL", "RDMA_SL", "") \
	P(traffic_class, RDMATENSOR_PARAM_AUTO, 0, 255, 0, RDMATENSOR_SET_TRAFFIC_CLASS, \
	  "traffic class in the GRH of what this side sends; auto: what the host has for the port (default_roce_tos of rdma_cm's configfs), as a rule 0, or what the connecting peer asks for", \
	  "RDMA_TRAFFIC_CLASS", NULL, "") \
	P(mtu, RDMATENSOR_PARAM_AUTO, 256, 4096, RDMATENSOR_PARAM_POW2, RDMATENSOR_SET_MTU, \
	  "path MTU, at most the port's active one; auto: that one. A connection has the lesser of both sides", \
	  "RDMA_QP_MTU", "RDMA_MTU", "bytes") \
	P(msg_slots, 64, 1, 1024, RDMATENSOR_PARAM_POW2, RDMATENSOR_SET_MSG_SLOTS, \
	  "control messages in flight in each direction, for each of which the first lane's receive queue has two places; 1: one, acked each time", \
	  "RDMATENSOR_MSG_SLOTS", NULL, "slots") \
	P(msg_slot_bytes, 4096, 1024, 65536, RDMATENSOR_PARAM_POW2, RDMATENSOR_SET_MSG_SLOT_BYTES, \
	  "longest control message", \
	  "RDMATENSOR_MSG_SLOT_BYTES", NULL, "bytes") \
	P(ack_batch, RDMATENSOR_PARAM_AUTO, 1, 1024, 0, RDMATENSOR_SET_ACK_BATCH, \
	  "consumed messages that one ack reports, at most msg_slots; auto: half of them", \
	  "RDMATENSOR_ACK_BATCH", NULL, "messages") \
	P(lanes, 1, 1, 8, 0, RDMATENSOR_SET_LANES, \
	  "queue pairs of each channel that this side connects; with more than one, a CANCEL and a deadline wait for the rest of a tensor that is being sent on several (stripe_bytes)", \
	  "RDMATENSOR_LANES", NULL, "queue pairs") \
	P(stripe_bytes, 1048576, 1, 4294967294, 0, RDMATENSOR_SET_STRIPE_BYTES, \
	  "a longer tensor is cut over the lanes; that of the side that fetches counts", \
	  "RDMATENSOR_STRIPE_BYTES", NULL, "bytes") \
	P(lane_bytes, RDMATENSOR_PARAM_AUTO, 65536, 67108864, 0, RDMATENSOR_SET_LANE_BYTES, \
	  "most content that the publisher has posted on a lane, besides one write of 64 to 256 KiB: short tensors and answers to CANCELs wait for it; four times that when none of these has come for a second; a faster wire needs more; auto: 131072 on soft-RoCE, 1048576 on others", \
	  "RDMATENSOR_LANE_BYTES", NULL, "bytes") \
	P(mr_page_bytes, 2097152, 4096, 2097152, RDMATENSOR_PARAM_POW2, RDMATENSOR_SET_MR_PAGE_BYTES, \
	  "longest page of a memory region: a pool or table that lies in chunks of that much takes fewer keys; 4096: pages of the processor alone", \
	  "RDMATENSOR_MR_PAGE_BYTES", NULL, "bytes") \
	P(mr_mode, 1, 1, 2, 0, RDMATENSOR_SET_MR_MODE, \
	  "what peers can write to, 1: at any time all pools that are made for peers to write; 2, strict: each channel's peer the destinations of fetches that are in flight from it, to the byte, and nothing else", \
	  "RDMATENSOR_MR_MODE", NULL, "") \
	P(list_mode, 1, 1, 2, 0, RDMATENSOR_SET_LIST_MODE, \
	  "what peers are told of the tensors that are offered, 1: names and meta-data of all, if they ask; 2: nothing, they have to know the names (those of a served model are in its index, rdmatensor.index)", \
	  "RDMATENSOR_LIST_MODE", NULL, "") \
	P(max_channels, 256, 1, 4096, 0, RDMATENSOR_SET_MAX_CHANNELS, \
	  "channels of a context at the same time", \
	  "RDMATENSOR_MAX_CHANNELS", NULL, "channels") \
	P(max_pools, 1024, 1, 65536, 0, RDMATENSOR_SET_MAX_POOLS, \
	  "pools of a context at the same time, and kept copies of published tensors beside them", \
	  "RDMATENSOR_MAX_POOLS", NULL, "pools") \
	P(handshake_ms, 10000, 100, 600000, 0, RDMATENSOR_SET_HANDSHAKE_MS, \
	  "bound on the set-up of a channel", \
	  "RDMATENSOR_HANDSHAKE_MS", NULL, "ms") \
	P(cancel_ms, 5000, 100, 600000, 0, RDMATENSOR_SET_CANCEL_MS, \
	  "bound on the answer to a cancelled fetch, plus the time to write the tensor", \
	  "RDMATENSOR_CANCEL_MS", NULL, "ms") \
	P(probe_ms, 2000, 10, 600000, 0, RDMATENSOR_SET_PROBE_MS, \
	  "a channel that is quiet for so long is probed, so that a peer that has stopped is detected; so is a queue pair that completes nothing for a tenth of it", \
	  "RDMATENSOR_PROBE_MS", NULL, "ms") \
	P(gather_lanes, 2, 1, 8, 0, RDMATENSOR_SET_GATHER_LANES, \
	  "queue pairs to each owner of a table, for gathers", \
	  "RDMATENSOR_GATHER_LANES", NULL, "queue pairs") \
	P(cq_mod, 128, 1, 1024, 0, RDMATENSOR_SET_CQ_MOD, \
	  "reads of a gather that are posted at once, of which the last is signalled", \
	  "RDMATENSOR_CQ_MOD", NULL, "reads") \
	P(cq_poll, 1, 1, 2, 0, RDMATENSOR_SET_CQ_POLL, \
	  "where completions are handled, 1: in softirq; 2: in a workqueue, which others can preempt", \
	  "RDMATENSOR_CQ_POLL", NULL, "")

/* Those whose value is a flag of START: on or off, 0 and 1. Without its bit in @set 0 is not meant */
#define RDMATENSOR_PARAM_SWITCHES(P) \
	P(validate, 0, 0, 1, 0, RDMATENSOR_SET_VALIDATE, \
	  "1: every content that a peer sends is checked by CRC32C; loopback fetches and gathered rows are not", \
	  "RDMATENSOR_VALIDATE", NULL, "")

/* Those of the host, which are no fields of START */
#define RDMATENSOR_PARAM_HOST(P) \
	P(max_contexts, 1024, 1, 65536, 0, 0, \
	  "started contexts of this host, of all processes", \
	  "", NULL, "contexts") \
	P(memlock, 0, 0, 1, 0, 0, \
	  "1: pools of kernel pages count against RLIMIT_MEMLOCK, as completion rings and memory that is registered or imported always do; 0: what bounds them is the memory cgroup that pays for their pages", \
	  "", NULL, "")

#endif /* _UAPI_RDMATENSOR_PARAMS_H */
