/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One end of a channel without a device: a core, a pool and a channel whose
 * lanes write down what is posted. What the other end is, the suite decides: it
 * is played by hand (script.h), or is a second end (pair.c).
 *
 * The end owns all that it has made; end_close() takes it apart as a context
 * does, and checks that nothing is left.
 */
#ifndef RDMATENSOR_KUNIT_END_H
#define RDMATENSOR_KUNIT_END_H

#include <linux/completion.h>
#include <linux/seq_buf.h>
#include <kunit/test.h>
#include "core/core.h"
#include "fetch/publication.h"
#include "fetch/request.h"
#include "fetch/response.h"
#include "memory/pool.h"
#include "transport/channel.h"

/* Two pages, so that a tensor of a few pages has several keys */
#define END_SEG_SHIFT (PAGE_SHIFT + 1)
#define END_IOVA 0x100000000ULL
#define END_TRACE 512

/* Memory regions of a channel in strict mode; there will be no more */
#define END_MRS 24

enum post_kind {
	POST_MESSAGE, POST_ACK, POST_PROBE, POST_WRITE, POST_REGISTRATION, POST_INVALIDATION,
};

/**
 * struct post - one work request
 * @item: in end->posted of its lane
 * @kind: which of the lane's operations
 * @seq: of a message
 * @bytes: of a message or write
 * @part: of a write
 * @index: immediate of a write
 * @last: it has the immediate
 * @sge: source of a write
 * @nr_sge: members of @sge
 * @remote_addr: of a write
 * @rkey: of a write, a registration or an invalidation
 * @exposure: of an invalidation
 * @responses: that the channel had in use when it was posted
 * @arrived: its bytes are at the peer
 */
struct post {
	struct list_head item;
	enum post_kind kind;
	u32 seq;
	u64 bytes;
	struct rdmatensor_part *part;
	u32 index;
	bool last;
	struct ib_sge sge[16];
	int nr_sge;
	u64 remote_addr;
	u32 rkey;
	struct rdmatensor_exposure *exposure;
	u32 responses;
	bool arrived;
};

/**
 * struct end - one end
 * @test: the case
 * @core: its own
 * @pool: its own; keys are END_KEY() of the segment
 * @other: from end_add_pool(), NULL: there is none
 * @key: of the first segment
 * @params: of @channel
 * @ibdev: in software: it takes the CPU's addresses
 * @domain: strict mode: of @channel
 * @mrs: strict mode: of @domain
 * @channel: NULL after end_close()
 * @posted: what has been posted to each lane and is not completed, under the channel's lock:
 *          work items post too
 * @post_error: what posting fails with, 0: it does not
 * @register_error: what posting to the registration queue of @domain fails with
 * @register_good: so many posts before that do not
 * @register_go: strict mode: what that waits for first; NULL: nothing
 * @registering: strict mode: it waits
 * @up: times that the channel came up
 * @failed: times that it began to go down
 * @left: tensors that were still offered at the end
 */
struct end {
	struct kunit *test;
	wait_queue_head_t poll_wait;
	struct rdmatensor_core core;
	struct rdmatensor_pool *pool;
	struct rdmatensor_pool *other;
	u32 key;
	struct rdmatensor_channel_params params;
	struct ib_device *ibdev;
	struct rdmatensor_domain *domain;
	struct ib_mr *mrs;
	struct rdmatensor_channel *channel;
	struct list_head posted[RDMATENSOR_LANES_MAX];
	int post_error;
	int register_error;
	unsigned int register_good;
	struct completion *register_go;
	struct completion registering;
	unsigned int up;
	unsigned int failed;
	unsigned int left;
};

extern const struct rdmatensor_channel_params end_params;

/* Ends the case if there is no memory */
struct end *end_open(struct kunit *test, u8 nr_lanes, u64 pool_bytes,
		     const struct rdmatensor_channel_params *params);
/* A second pool, once; taken apart with the end */
struct rdmatensor_pool *end_add_pool(struct end *end, u64 bytes, enum rdmatensor_pool_peers peers);
/* What @params would say in a connection request */
void end_private(const struct rdmatensor_channel_params *params,
		 struct rdmatensor_wire_private *private);
/* The channel begins to go down, if it has not: lanes, fetches, tensors, as a context does */
void end_down(struct end *end);
void end_close(struct end *end);

/* Bytes [0, *run) from @offset on are in one piece */
void *end_at(struct end *end, u64 offset, u32 *run);
/* Puts @msg where message number consumed + 1 is expected. Return: its length */
u32 end_put_message(struct end *end, const struct rdmatensor_msg *msg, u32 consumed);
/* The next completion entry. False: there is none */
bool end_reap(struct end *end, struct rdmatensor_cqe *cqe);
u64 end_stat(struct end *end, enum rdmatensor_stat stat);
/* The fetch's deadline, or its bound on a CANCEL's answer, has come. False: it has ended */
bool end_expire(struct end *end, u64 user_data);
/* Its timer runs */
bool end_is_armed(struct end *end, u64 user_data);
void end_abort_step(struct end *end, s64 step_id, int error);
/* The oldest work request of a lane, NULL: none. Only end_complete() and end_down() forget it */
struct post *end_first(struct end *end, u8 lane);
/* The oldest one of a lane that has not arrived, which it has from now on; NULL: none */
struct post *end_arrive(struct end *end, u8 lane);
/* The device says that the lane's oldest work request is done, and it is forgotten */
void end_complete(struct end *end, u8 lane);

#endif /* RDMATENSOR_KUNIT_END_H */
