// SPDX-License-Identifier: GPL-2.0
/*
 * One end of a channel without a device. See end.h.
 */
#include <linux/slab.h>
#include "end.h"
#include "fetch/listing.h"
#include "fetch/operation.h"
#include "memory/domain.h"
#include "memory/memory.h"

const struct rdmatensor_channel_params end_params = {
	.queue_depth = 64,
	.msg_slots = 16,
	.msg_slot_bytes = 1024,
	.ack_batch = 16,
	.stripe_bytes = 4 * PAGE_SIZE,
	.lane_bytes = SZ_1M,
	.max_requests = 8,
	/* Longer than any case takes */
	.cancel_ms = 600000,
	.probe_ms = 600000,
};

/* A channel's user_data is its end: the machines do not look at it */
static struct end *to_end(struct rdmatensor_channel *channel)
{
	return (struct end *)(unsigned long)channel->user_data;
}

/* What is decoded is a copy that no peer can write to (design 7.2) */
static void expect_copy(struct rdmatensor_channel *channel, const void *at, u32 len)
{
	const struct rdmatensor_msgbuf *msgbuf = &channel->msgbuf;

	KUNIT_EXPECT_TRUE(to_end(channel)->test,
			  !len || (at >= msgbuf->scratch &&
				   at + len <= msgbuf->scratch + msgbuf->slot_bytes));
}

static int end_message(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
		       u64 seq, const char **why)
{
	expect_copy(channel, msg->name, msg->name_len);
	expect_copy(channel, msg->text, msg->text_len);
	expect_copy(channel, msg->rkeys, msg->nr_rkeys * sizeof(*msg->rkeys));
	expect_copy(channel, msg->entries, msg->entries_bytes);
	switch (msg->type) {
	case RDMATENSOR_WIRE_LIST:
	case RDMATENSOR_WIRE_LIST_INFO:
		return rdmatensor_listing_message(channel, msg, why);
	case RDMATENSOR_WIRE_META_DATA_RESPONSE:
	case RDMATENSOR_WIRE_ERROR_STATUS:
		return rdmatensor_request_message(channel, msg, why);
	default:
		return rdmatensor_response_message(channel, msg, seq, why);
	}
}

static int end_hello(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
		     const char **why)
{
	if (strcmp(channel->worker, "stranger"))
		return 0;
	*why = "a stranger";
	return -ENOENT;
}

static void end_is_up(struct rdmatensor_channel *channel)
{
	to_end(channel)->up++;
}

static void end_has_failed(struct rdmatensor_channel *channel)
{
	to_end(channel)->failed++;
}

static const struct rdmatensor_channel_ops end_channel_ops = {
	.message = end_message,
	.content = rdmatensor_request_content,
	.hello = end_hello,
	.up = end_is_up,
	.failed = end_has_failed,
};

static struct post *post_new(struct rdmatensor_lane *lane, enum post_kind kind)
{
	struct end *end = to_end(lane->channel);
	struct post *post;

	lockdep_assert_held(&lane->channel->lock);
	if (end->post_error)
		return NULL;
	post = kzalloc(sizeof(*post), GFP_ATOMIC);
	if (!post)
		return NULL;
	post->kind = kind;
	post->responses = lane->channel->nr_responses;
	list_add_tail(&post->item, &end->posted[lane->index]);
	return post;
}

static int post_message(struct rdmatensor_lane *lane, u64 seq, u32 bytes)
{
	struct post *post = post_new(lane, POST_MESSAGE);

	if (!post)
		return to_end(lane->channel)->post_error ?: -ENOMEM;
	post->seq = seq;
	post->bytes = bytes;
	post->last = true;
	return 0;
}

static int post_ack(struct rdmatensor_lane *lane)
{
	struct post *post = post_new(lane, POST_ACK);

	if (!post)
		return to_end(lane->channel)->post_error ?: -ENOMEM;
	post->last = true;
	return 0;
}

static int post_probe(struct rdmatensor_lane *lane)
{
	struct post *post = post_new(lane, POST_PROBE);

	return post ? 0 : to_end(lane->channel)->post_error ?: -ENOMEM;
}

static int post_write(struct rdmatensor_lane *lane, struct rdmatensor_part *part,
		      struct ib_sge *sge, int nr_sge, u64 remote_addr, u32 rkey, bool last)
{
	struct post *post = post_new(lane, POST_WRITE);
	int i;

	if (!post)
		return to_end(lane->channel)->post_error ?: -ENOMEM;
	post->part = part;
	post->index = part->write->index;
	post->last = last;
	post->remote_addr = remote_addr;
	post->rkey = rkey;
	post->nr_sge = nr_sge;
	for (i = 0; i < nr_sge; i++) {
		post->sge[i] = sge[i];
		post->bytes += sge[i].length;
	}
	return 0;
}

/* Memory is registered that is mapped, and by a key that was invalidated before */
static void end_register(struct end *end, struct ib_mr *mr)
{
	KUNIT_EXPECT_GT(end->test, mr->length, 0ULL);
	KUNIT_EXPECT_FALSE(end->test, mr->need_inval);
	mr->need_inval = true;
}

static int post_registration(struct rdmatensor_lane *lane, struct ib_mr *mr)
{
	struct end *end = to_end(lane->channel);
	struct post *post = post_new(lane, POST_REGISTRATION);

	if (!post)
		return end->post_error ?: -ENOMEM;
	KUNIT_EXPECT_FALSE(end->test, end->domain->apart);
	end_register(end, mr);
	post->rkey = mr->rkey;
	return 0;
}

static int post_invalidation(struct rdmatensor_lane *lane, struct rdmatensor_exposure *exposure,
			     struct ib_mr *mr)
{
	struct post *post = post_new(lane, POST_INVALIDATION);

	if (!post)
		return to_end(lane->channel)->post_error ?: -ENOMEM;
	KUNIT_EXPECT_TRUE(to_end(lane->channel)->test, mr->need_inval);
	mr->need_inval = false;
	post->exposure = exposure;
	post->rkey = mr->rkey;
	return 0;
}

static const struct rdmatensor_lane_ops end_lane_ops = {
	.post_message = post_message,
	.post_ack = post_ack,
	.post_probe = post_probe,
	.post_write = post_write,
	.post_registration = post_registration,
	.post_invalidation = post_invalidation,
};

static int end_set_page(struct ib_mr *mr, u64 addr)
{
	return 0;
}

static int end_map_mr_sg(struct ib_mr *mr, struct scatterlist *sgl, int nr, unsigned int *offset)
{
	return ib_sg_to_pages(mr, sgl, nr, offset, end_set_page);
}

/* The registration queue of the domain: a chain is done when this returns */
static int end_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct end *end = qp->qp_context;
	struct ib_wc wc = { .status = IB_WC_SUCCESS };

	KUNIT_EXPECT_TRUE(end->test, end->domain->apart);
	if (end->register_go) {
		complete(&end->registering);
		wait_for_completion(end->register_go);
	}
	if (end->register_error && !end->register_good)
		return end->register_error;
	if (end->register_good)
		end->register_good--;
	for (; wr; wr = wr->next) {
		KUNIT_EXPECT_EQ(end->test, wr->opcode, IB_WR_REG_MR);
		end_register(end, reg_wr(wr)->mr);
		wc.wr_cqe = wr->wr_cqe;
		if (wr->send_flags & IB_SEND_SIGNALED)
			wc.wr_cqe->done(qp->send_cq, &wc);
	}
	return 0;
}

static void end_drain_sq(struct ib_qp *qp)
{
}

/* One in software */
static void end_make_device(struct end *end)
{
	end->ibdev = kunit_kzalloc(end->test, sizeof(*end->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(end->test, end->ibdev);
	end->ibdev->ops.map_mr_sg = end_map_mr_sg;
	end->ibdev->ops.post_send = end_post_send;
	end->ibdev->ops.drain_sq = end_drain_sq;
}

/* A domain whose memory regions are all there: the device makes no more */
static void end_make_domain(struct end *end)
{
	struct rdmatensor_domain *domain;
	struct ib_cq *cq;
	struct ib_pd *pd;
	u32 i;

	domain = kunit_kzalloc(end->test, sizeof(*domain), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(end->test, domain);
	domain->qp = kunit_kzalloc(end->test, sizeof(*domain->qp), GFP_KERNEL);
	pd = kunit_kzalloc(end->test, sizeof(*pd), GFP_KERNEL);
	cq = kunit_kzalloc(end->test, sizeof(*cq), GFP_KERNEL);
	end->mrs = kunit_kcalloc(end->test, END_MRS, sizeof(*end->mrs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(end->test, domain->qp);
	KUNIT_ASSERT_NOT_NULL(end->test, pd);
	KUNIT_ASSERT_NOT_NULL(end->test, cq);
	KUNIT_ASSERT_NOT_NULL(end->test, end->mrs);
	pd->device = end->ibdev;
	cq->device = end->ibdev;
	pd->local_dma_lkey = 7;
	kref_init(&domain->ref);
	domain->strict = true;
	domain->sq_depth = 64;
	domain->pd = pd;
	domain->ibdev = end->ibdev;
	domain->seg_shift = END_SEG_SHIFT;
	mutex_init(&domain->lock);
	mutex_init(&domain->keys_lock);
	init_waitqueue_head(&domain->wait);
	domain->qp->pd = pd;
	domain->qp->device = end->ibdev;
	domain->qp->qp_context = end;
	domain->qp->send_cq = cq;
	init_completion(&end->registering);
	rdmatensor_quota_init(&domain->quota);
	rdmatensor_quota_init(&domain->keys);
	spin_lock_init(&domain->qp->mr_lock);
	INIT_LIST_HEAD(&domain->qp->rdma_mrs);
	for (i = 0; i < END_MRS; i++) {
		end->mrs[i].device = end->ibdev;
		end->mrs[i].rkey = (i + 1) << 8;
		list_add_tail(&end->mrs[i].qp_entry, &domain->qp->rdma_mrs);
	}
	end->domain = domain;
	rdmatensor_channel_take_domain(end->channel, domain);
}

/* All memory regions have come back, and stand for nothing */
static void end_check_domain(struct end *end)
{
	struct ib_mr *mr;
	int nr = 0;

	list_for_each_entry(mr, &end->domain->qp->rdma_mrs, qp_entry) {
		KUNIT_EXPECT_EQ(end->test, mr->length, 0ULL);
		nr++;
	}
	KUNIT_EXPECT_EQ(end->test, nr, END_MRS);
	KUNIT_EXPECT_EQ(end->test, end->domain->qp->mrs_used, 0);
	KUNIT_EXPECT_EQ(end->test, kref_read(&end->domain->ref), 1);
}

/* Keys from @key on */
static struct rdmatensor_pool *end_make_pool(struct end *end, u32 id, u64 bytes, u32 key)
{
	struct rdmatensor_pool *pool;
	u32 i;

	pool = kunit_kzalloc(end->test, sizeof(*pool), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(end->test, pool);
	kref_init(&pool->ref);
	pool->id = id;
	pool->bytes = bytes;
	pool->writable = true;
	pool->reg.iova = END_IOVA;
	pool->reg.seg_shift = END_SEG_SHIFT;
	pool->reg.nr = bytes >> END_SEG_SHIFT;
	pool->reg.mrs = kunit_kcalloc(end->test, pool->reg.nr, sizeof(*pool->reg.mrs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(end->test, pool->reg.mrs);
	KUNIT_ASSERT_EQ(end->test, rdmatensor_regions_init(&pool->regions, bytes), 0);
	pool->memory = rdmatensor_kernel_pages_alloc(bytes, END_SEG_SHIFT, MAX_PAGE_ORDER, NULL);
	KUNIT_ASSERT_FALSE(end->test, IS_ERR(pool->memory));
	for (i = 0; i < pool->reg.nr; i++) {
		pool->reg.mrs[i].lkey = key + i;
		pool->reg.mrs[i].rkey = key + i;
		KUNIT_ASSERT_EQ(end->test,
				pool->memory->ops->map(pool->memory, (u64)i << END_SEG_SHIFT,
						       1U << END_SEG_SHIFT, end->ibdev,
						       DMA_BIDIRECTIONAL, &pool->reg.mrs[i].sgt),
				0);
	}
	return pool;
}

struct rdmatensor_pool *end_add_pool(struct end *end, u64 bytes, enum rdmatensor_pool_peers peers)
{
	end->other = end_make_pool(end, 2, bytes, end->key + 0x8000);
	end->other->peers = peers;
	return end->other;
}

static void end_make_msgbuf(struct end *end)
{
	struct rdmatensor_msgbuf *msgbuf = &end->channel->msgbuf;
	struct ib_device *ibdev = end->ibdev;
	u32 bytes;

	msgbuf->slots = end->channel->params->msg_slots;
	msgbuf->slot_bytes = end->channel->params->msg_slot_bytes;
	bytes = PAGE_ALIGN(msgbuf->slots * msgbuf->slot_bytes);
	msgbuf->scratch = kzalloc(msgbuf->slot_bytes, GFP_KERNEL);
	msgbuf->rkeys = kzalloc(msgbuf->slot_bytes, GFP_KERNEL);
	msgbuf->rx.memory = rdmatensor_coherent_alloc(ibdev, bytes, msgbuf->slot_bytes);
	msgbuf->tx.memory = rdmatensor_coherent_alloc(ibdev, bytes, msgbuf->slot_bytes);
	KUNIT_ASSERT_NOT_NULL(end->test, msgbuf->scratch);
	KUNIT_ASSERT_NOT_NULL(end->test, msgbuf->rkeys);
	KUNIT_ASSERT_FALSE(end->test, IS_ERR(msgbuf->rx.memory));
	KUNIT_ASSERT_FALSE(end->test, IS_ERR(msgbuf->tx.memory));
}

struct end *end_open(struct kunit *test, u8 nr_lanes, u64 pool_bytes,
		     const struct rdmatensor_channel_params *params)
{
	static u32 key;
	struct end *end;
	int i;

	end = kunit_kzalloc(test, sizeof(*end), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, end);
	end->test = test;
	key += 0x10000;
	end->key = key;
	init_waitqueue_head(&end->poll_wait);
	KUNIT_ASSERT_EQ(test, rdmatensor_core_init(&end->core, 1024, &end->poll_wait), 0);
	/* One item after the other, so that a case can hold them all up */
	destroy_workqueue(end->core.wq);
	end->core.wq = alloc_ordered_workqueue("rdmatensor_kunit", 0);
	KUNIT_ASSERT_NOT_NULL(test, end->core.wq);
	for (i = 0; i < ARRAY_SIZE(end->posted); i++)
		INIT_LIST_HEAD(&end->posted[i]);
	end_make_device(end);
	end->pool = end_make_pool(end, 1, pool_bytes, key);

	end->params = *params;
	end->channel = rdmatensor_channel_alloc(&end->core, nr_lanes, &end->params,
						&end_channel_ops, &end_lane_ops);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->channel));
	end->channel->user_data = (unsigned long)end;
	end->channel->own_worker = "end";
	end->channel->lanes_open = nr_lanes;
	if (params->strict)
		end_make_domain(end);
	end_make_msgbuf(end);
	end->channel->listings = rdmatensor_listings_alloc(end->channel);
	KUNIT_ASSERT_NOT_NULL(test, end->channel->listings);
	KUNIT_ASSERT_EQ(test, rdmatensor_response_alloc(end->channel), 0);
	return end;
}

void end_private(const struct rdmatensor_channel_params *params,
		 struct rdmatensor_wire_private *private)
{
	*private = (struct rdmatensor_wire_private) {
		.msgbuf_addr = cpu_to_le64(END_IOVA),
		.msgbuf_rkey = cpu_to_le32(1),
		.msg_slot_bytes = cpu_to_le32(params->msg_slot_bytes),
		.msg_slots = cpu_to_le16(params->msg_slots),
		.ack_batch = cpu_to_le16(params->ack_batch),
		.max_requests = cpu_to_le32(params->max_requests),
	};
}

struct post *end_first(struct end *end, u8 lane)
{
	struct post *post;

	spin_lock_bh(&end->channel->lock);
	post = list_first_entry_or_null(&end->posted[lane], struct post, item);
	spin_unlock_bh(&end->channel->lock);
	return post;
}

struct post *end_arrive(struct end *end, u8 lane)
{
	struct post *post, *found = NULL;

	spin_lock_bh(&end->channel->lock);
	list_for_each_entry(post, &end->posted[lane], item)
		if (!post->arrived) {
			found = post;
			found->arrived = true;
			break;
		}
	spin_unlock_bh(&end->channel->lock);
	return found;
}

static void end_forget(struct end *end, struct post *post)
{
	spin_lock_bh(&end->channel->lock);
	list_del(&post->item);
	spin_unlock_bh(&end->channel->lock);
	kfree(post);
}

void end_complete(struct end *end, u8 lane)
{
	struct post *post = end_first(end, lane);
	enum post_kind kind = post->kind;
	struct rdmatensor_exposure *exposure = post->exposure;
	struct rdmatensor_part *part = post->part;

	end_forget(end, post);
	switch (kind) {
	case POST_MESSAGE:
		rdmatensor_channel_tx_message(end->channel);
		break;
	case POST_ACK:
		rdmatensor_channel_tx_ack(end->channel);
		break;
	case POST_PROBE:
		rdmatensor_channel_tx_probe(&end->channel->lanes[lane], true);
		break;
	case POST_WRITE:
		rdmatensor_channel_tx_part(&end->channel->lanes[lane], part, true);
		break;
	case POST_REGISTRATION:
		rdmatensor_channel_tx_registration(end->channel);
		break;
	case POST_INVALIDATION:
		rdmatensor_channel_tx_invalidation(end->channel, exposure);
		break;
	}
}

/* The drain: work requests end with an error; for a write the channel hears of it */
static void end_flush(struct end *end)
{
	struct post *post;
	u8 lane;

	for (lane = 0; lane < end->channel->nr_lanes; lane++) {
		while ((post = end_first(end, lane))) {
			struct rdmatensor_part *part = post->part;

			end_forget(end, post);
			if (part)
				rdmatensor_channel_tx_part(&end->channel->lanes[lane], part,
							   false);
		}
	}
}

void end_down(struct end *end)
{
	rdmatensor_channel_fail(end->channel, -ECONNRESET, "the end");
	end_flush(end);
	rdmatensor_channel_down(end->channel);
	rdmatensor_listing_down(end->channel);
	rdmatensor_request_down(end->channel);
	rdmatensor_response_down(end->channel);
}

static void end_free_pool(struct end *end, struct rdmatensor_pool *pool)
{
	u32 i;

	if (!pool)
		return;
	KUNIT_EXPECT_EQ(end->test, kref_read(&pool->ref), 1);
	KUNIT_EXPECT_EQ(end->test, pool->regions.nr_uses, 0);
	for (i = 0; i < pool->reg.nr; i++)
		pool->memory->ops->unmap(pool->memory, end->ibdev, DMA_BIDIRECTIONAL,
					 &pool->reg.mrs[i].sgt);
	rdmatensor_memory_free(pool->memory);
	rdmatensor_regions_destroy(&pool->regions);
}

void end_close(struct end *end)
{
	struct rdmatensor_channel *channel = end->channel;
	struct rdmatensor_msgbuf msgbuf = channel->msgbuf;
	struct rdmatensor_listings *listings = channel->listings;
	struct rdmatensor_tensor *tensor;
	struct rdmatensor_cqe cqe;
	LIST_HEAD(released);

	if (channel->state != RDMATENSOR_CHANNEL_DOWN)
		end_down(end);
	flush_workqueue(end->core.wq);
	KUNIT_EXPECT_EQ(end->test, end->failed, 1);
	KUNIT_EXPECT_EQ(end->test, channel->nr_responses, 0);
	KUNIT_EXPECT_EQ(end->test, channel->nr_requests, 0);
	KUNIT_EXPECT_EQ(end->test, channel->outstanding, 0);
	KUNIT_EXPECT_TRUE(end->test, xa_empty(&channel->requests));
	KUNIT_EXPECT_TRUE(end->test, list_empty(&channel->txq));
	KUNIT_EXPECT_TRUE(end->test, list_empty(&channel->closing));
	KUNIT_EXPECT_EQ(end->test, channel->users, 0);
	if (end->domain)
		end_check_domain(end);
	KUNIT_EXPECT_TRUE(end->test, RB_EMPTY_ROOT(&end->core.operations));

	end->channel = NULL;
	rdmatensor_channel_put(channel);
	rdmatensor_listings_free(listings);
	rdmatensor_msgbuf_free(&msgbuf);

	rdmatensor_rendezvous_drain(end->core.rdv, &released);
	list_for_each_entry(tensor, &released, item)
		end->left++;
	rdmatensor_publication_release_list(&released);
	while (end_reap(end, &cqe))
		;
	KUNIT_EXPECT_EQ(end->test, end->core.ring.reserved, 0);
	rdmatensor_core_destroy(&end->core);
	end_free_pool(end, end->pool);
	end_free_pool(end, end->other);
}

void *end_at(struct end *end, u64 offset, u32 *run)
{
	return rdmatensor_memory_addr(end->pool->memory, offset, run);
}

u32 end_put_message(struct end *end, const struct rdmatensor_msg *msg, u32 consumed)
{
	struct rdmatensor_msgbuf *msgbuf = &end->channel->msgbuf;
	u32 slot = end->channel->credits.consumed & (msgbuf->slots - 1);
	void *at = rdmatensor_memory_addr(msgbuf->rx.memory, slot * msgbuf->slot_bytes, NULL);
	int ret = rdmatensor_wire_encode(msg, at, msgbuf->slot_bytes);

	KUNIT_ASSERT_GT(end->test, ret, 0);
	rdmatensor_wire_set_consumed(at, consumed);
	return ret;
}

bool end_reap(struct end *end, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_ring *shared = end->core.ring.shared;

	/* As a process does it: the entry is read after head, tail goes on after that */
	if (shared->tail == smp_load_acquire(&shared->head))
		return false;
	*cqe = end->core.ring.cqes[shared->tail & (end->core.ring.entries - 1)];
	/* The entry has been read */
	smp_store_release(&shared->tail, shared->tail + 1);
	return true;
}

u64 end_stat(struct end *end, enum rdmatensor_stat stat)
{
	static struct rdmatensor_sums sum;

	memset(&sum, 0, sizeof(sum));
	rdmatensor_core_sum(&end->core, &sum);
	return sum.tally.stats[stat];
}

bool end_expire(struct end *end, u64 user_data)
{
	struct rdmatensor_operation_place place = { .user_data = user_data };
	struct rdmatensor_operation *op;
	bool found;

	op = rdmatensor_operation_next(&end->core, &place);
	if (!op)
		return false;
	found = op->user_data == user_data;
	/* As when it runs out: it is not armed any more, and its reference goes on */
	if (found && timer_delete(&op->timer))
		rdmatensor_operation_put(op);
	if (found)
		op->ops->expire(op);
	rdmatensor_operation_put(op);
	return found;
}

bool end_is_armed(struct end *end, u64 user_data)
{
	struct rdmatensor_operation_place place = { .user_data = user_data };
	struct rdmatensor_operation *op = rdmatensor_operation_next(&end->core, &place);
	bool armed;

	if (!op)
		return false;
	armed = op->user_data == user_data && timer_pending(&op->timer);
	rdmatensor_operation_put(op);
	return armed;
}

void end_abort_step(struct end *end, s64 step_id, int error)
{
	struct rdmatensor_status status = { .error = error };
	LIST_HEAD(released);
	LIST_HEAD(waiters);

	rdmatensor_rendezvous_abort_step(end->core.rdv, step_id, &status, &released,
					 &waiters);
	rdmatensor_publication_release_list(&released);
	rdmatensor_rendezvous_work_off(&waiters);
	rdmatensor_operation_abort_step(&end->core, step_id, &status);
	rdmatensor_response_abort_step(end->channel, step_id, &status);
}
