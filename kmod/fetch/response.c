// SPDX-License-Identifier: GPL-2.0
/*
 * Responses: the sender's side of a fetch.
 *
 *	(request) -> WAITING -> [CHECKSUM] -> META_QUEUED -> META_SENT
 *	                |                                       | re-request
 *	                +------- same meta-data ----------> WRITING -> (delivered)
 *	any -> ERROR_QUEUED -> (end)
 *
 * A response holds its tensor from the match until the content has reached the peer, or
 * until it returns the tensor to the table: on CANCEL, on an aborted step, and when the
 * channel goes down (design 7.5). A CANCEL is always answered, as soon as the posted writes
 * of the content have completed; the rest is not written (design 7.1).
 *
 * All responses of a channel are allocated with it, because they are needed in completion
 * context. Their number is bounded by the limit on the peer's requests, and the channel's on
 * contents that are being written. A response in use holds a reference to the channel. A
 * match is processed without locks, so a WAITING response may be leaving the table when it
 * is cancelled or its channel ends; then response_matched() ends it.
 *
 * Members are guarded by the channel's lock, the tensor's by the table's.
 */
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/fault.h"
#include "core/limits.h"
#include "core/trace.h"
#include "fetch/fetch.h"
#include "fetch/publication.h"
#include "fetch/response.h"

#define RESPONSE_RKEYS 2
#define RESPONSE_DOTS 3

enum response_state {
	RESPONSE_FREE,
	RESPONSE_WAITING,
	RESPONSE_CHECKSUM,
	RESPONSE_META_QUEUED,
	RESPONSE_META_SENT,
	RESPONSE_WRITING,
	RESPONSE_ERROR_QUEUED,
};

/**
 * struct response_slice - what is wanted of the tensor
 * @slice: as the request has it
 * @part: its meta-data in the tensor that was matched
 * @cut: where that lies, if there is any
 */
struct response_slice {
	struct rdmatensor_slice slice;
	struct rdmatensor_meta part;
	struct rdmatensor_cut cut;
};

/**
 * struct response_layout - where the content goes that is not to lie together
 * @layout: as the message has it
 * @cut: where that is from the destination's first byte on, once the content is known
 */
struct response_layout {
	struct rdmatensor_layout layout;
	struct rdmatensor_cut cut;
};

/**
 * struct rdmatensor_response - one response
 * @channel: referenced while in use
 * @node: in the channel's table by @index
 * @free: in the channel's list of free responses
 * @waiter: in the rendezvous table; once an ERROR_STATUS is decided it has that status, and
 *          the key whose name goes with it
 * @tx: the message to send next; the state says which
 * @checksum_work: computes @checksum
 * @state: enum response_state, changed by response_move() alone
 * @validate: a checksum goes with the content
 * @cancelled: the peer wants no content; it waits for the answer
 * @has_dest: the last request message gave a destination
 * @nr_parts: parts that the content is cut into
 * @seg_shift: of the destination
 * @index: on the wire
 * @seq: number of the last request message
 * @checksum: of the content
 * @step_id: of the request
 * @remote_addr: destination
 * @layout: of the content there, allocated; NULL: it lies together
 * @kept: the destination as it is remembered, referenced; NULL: it is not
 * @rkeys: its keys: @kept's, @few_rkeys, or allocated
 * @few_rkeys: space for most destinations' keys
 * @want: meta-data that the receiver expects
 * @slice: what it wants of the tensor, allocated; NULL: all
 * @write: the content
 * @parts: of @write
 */
struct rdmatensor_response {
	struct rdmatensor_channel *channel;
	struct hlist_node node;
	struct list_head free;
	struct rdmatensor_waiter waiter;
	struct rdmatensor_txmsg tx;
	struct work_struct checksum_work;
	u8 state;
	bool validate;
	bool cancelled;
	bool has_dest;
	u8 nr_parts;
	u8 seg_shift;
	u32 index;
	u64 seq;
	u32 checksum;
	s64 step_id;
	u64 remote_addr;
	struct response_layout *layout;
	struct rdmatensor_kept *kept;
	__le32 *rkeys;
	__le32 few_rkeys[RESPONSE_RKEYS];
	struct rdmatensor_meta want;
	struct response_slice *slice;
	struct rdmatensor_write write;
	struct rdmatensor_part parts[];
};

/* All changes of state; each is legal from exactly those states */
static void response_move(struct rdmatensor_response *resp, enum response_state to)
{
	static const u8 from[] = {
		[RESPONSE_FREE] = BIT(RESPONSE_WAITING) | BIT(RESPONSE_CHECKSUM) |
				  BIT(RESPONSE_META_QUEUED) | BIT(RESPONSE_META_SENT) |
				  BIT(RESPONSE_WRITING) | BIT(RESPONSE_ERROR_QUEUED),
		[RESPONSE_WAITING] = BIT(RESPONSE_FREE),
		[RESPONSE_CHECKSUM] = BIT(RESPONSE_WAITING),
		[RESPONSE_META_QUEUED] = BIT(RESPONSE_WAITING) | BIT(RESPONSE_CHECKSUM),
		[RESPONSE_META_SENT] = BIT(RESPONSE_META_QUEUED),
		[RESPONSE_WRITING] = BIT(RESPONSE_WAITING) | BIT(RESPONSE_META_SENT),
		[RESPONSE_ERROR_QUEUED] = BIT(RESPONSE_WAITING) | BIT(RESPONSE_CHECKSUM) |
					  BIT(RESPONSE_META_QUEUED) |
					  BIT(RESPONSE_META_SENT) | BIT(RESPONSE_WRITING),
	};

	static const char * const names[] = {
		[RESPONSE_FREE] = "FREE",
		[RESPONSE_WAITING] = "WAITING",
		[RESPONSE_CHECKSUM] = "CHECKSUM",
		[RESPONSE_META_QUEUED] = "META_QUEUED",
		[RESPONSE_META_SENT] = "META_SENT",
		[RESPONSE_WRITING] = "WRITING",
		[RESPONSE_ERROR_QUEUED] = "ERROR_QUEUED",
	};

	lockdep_assert_held(&resp->channel->lock);
	WARN_ON_ONCE(!(from[to] & BIT(resp->state)));
	trace_rdmatensor_response_state(resp->channel->id, resp->index, names[resp->state],
					names[to]);
	resp->state = to;
}

static void response_forget_dest(struct rdmatensor_response *resp)
{
	kfree(resp->layout);
	resp->layout = NULL;
	if (resp->kept)
		rdmatensor_kept_put(resp->kept);
	else if (resp->rkeys != resp->few_rkeys)
		kfree(resp->rkeys);
	resp->kept = NULL;
	resp->rkeys = resp->few_rkeys;
}

/* The tensor leaves the response */
static struct rdmatensor_publication *response_take(struct rdmatensor_response *resp)
{
	struct rdmatensor_tensor *tensor = resp->waiter.tensor;

	resp->waiter.tensor = NULL;
	return tensor ? to_publication(tensor) : NULL;
}

/* Ends it. The caller's own reference keeps the channel and its lock */
static void response_free(struct rdmatensor_response *resp)
{
	struct rdmatensor_channel *channel = resp->channel;

	WARN_ON_ONCE(resp->waiter.tensor);
	response_move(resp, RESPONSE_FREE);
	rdmatensor_channel_unsend(&resp->tx);
	response_forget_dest(resp);
	kfree(resp->slice);
	resp->slice = NULL;
	rdmatensor_waiter_end(&resp->waiter);
	hash_del(&resp->node);
	list_add(&resp->free, &channel->free_responses);
	channel->nr_responses--;
	rdmatensor_channel_put(channel);
}

/* NULL: the peer has more requests outstanding than it may */
static struct rdmatensor_response *response_new(struct rdmatensor_channel *channel,
						u32 index)
{
	struct rdmatensor_response *resp;

	resp = list_first_entry_or_null(&channel->free_responses,
					struct rdmatensor_response, free);
	if (!resp)
		return NULL;

	list_del_init(&resp->free);
	channel->nr_responses++;
	rdmatensor_channel_get(channel);
	resp->index = index;
	resp->validate = false;
	resp->cancelled = false;
	resp->has_dest = false;
	resp->checksum = 0;
	resp->waiter.tensor = NULL;
	hash_add(channel->responses, &resp->node, index);
	response_move(resp, RESPONSE_WAITING);
	return resp;
}

static struct rdmatensor_response *response_find(struct rdmatensor_channel *channel,
						 u32 index)
{
	struct rdmatensor_response *resp;

	lockdep_assert_held(&channel->lock);
	hash_for_each_possible(channel->responses, resp, node, index)
		if (resp->index == index)
			return resp;
	return NULL;
}

/* The step that it is about: with a tensor, that one's */
static s64 response_step(const struct rdmatensor_response *resp)
{
	return resp->waiter.tensor ? rdmatensor_tensor_step(resp->waiter.tensor) :
	       resp->step_id;
}

static bool response_may_name(const struct rdmatensor_response *resp)
{
	return resp->channel->features & RDMATENSOR_WIRE_FEATURE_ERROR_NAMED;
}

/*
 * The text, as far as the slot has space for it behind the name. A text that is cut ends in
 * dots; it is composed in the message buffer's space for keys, of which such a message has none
 */
static void response_say(const struct rdmatensor_response *resp, struct rdmatensor_msg *msg)
{
	const struct rdmatensor_msgbuf *msgbuf = &resp->channel->msgbuf;
	char *cut = (char *)msgbuf->rkeys;
	const char *text;
	u16 len;
	u32 most;

	most = min(resp->channel->peer_slot_bytes, msgbuf->slot_bytes) -
	       rdmatensor_wire_length(msg);
	most = min(most, rdmatensor_wire_text_max(msg->flags));
	text = rdmatensor_status_text(&resp->waiter.status, &len);
	msg->text = text;
	msg->text_len = len;
	if (len <= most)
		return;

	len = rdmatensor_text_cut(text, len, most - RESPONSE_DOTS);
	memcpy(cut, text, len);
	memset(cut + len, '.', RESPONSE_DOTS);
	msg->text = cut;
	msg->text_len = len + RESPONSE_DOTS;
}

static void response_fill(struct rdmatensor_txmsg *tx, struct rdmatensor_msg *msg)
{
	struct rdmatensor_response *resp = container_of(tx, struct rdmatensor_response, tx);

	msg->request_index = resp->index;
	if (resp->state == RESPONSE_META_QUEUED) {
		msg->type = RDMATENSOR_WIRE_META_DATA_RESPONSE;
		msg->step_id = response_step(resp);
		msg->meta = resp->waiter.tensor->meta;
		if (resp->validate) {
			msg->flags = RDMATENSOR_WIRE_F_CHECKSUM;
			msg->checksum = resp->checksum;
		}
		return;
	}
	msg->type = RDMATENSOR_WIRE_ERROR_STATUS;
	if (resp->cancelled) {
		msg->flags = RDMATENSOR_WIRE_F_CANCELLED;
		msg->error = -ECANCELED;
	} else {
		msg->error = resp->waiter.status.error;
		if (resp->waiter.key && response_may_name(resp)) {
			msg->flags = RDMATENSOR_WIRE_F_NAMED;
			msg->step_id = resp->step_id;
			msg->name = rdmatensor_rendezvous_key_name(resp->waiter.key,
								   &msg->name_len);
		}
		response_say(resp, msg);
	}
}

static void response_posted(struct rdmatensor_txmsg *tx, u64 seq)
{
	struct rdmatensor_response *resp = container_of(tx, struct rdmatensor_response, tx);

	if (resp->state == RESPONSE_META_QUEUED)
		response_move(resp, RESPONSE_META_SENT);
	else
		response_free(resp);
}

/*
 * ERROR_STATUS: with waiter.status and the name that it waited for, or that of its tensor if
 * it still holds it; or as the answer to a CANCEL
 */
static void response_fail(struct rdmatensor_response *resp)
{
	struct rdmatensor_tensor *tensor = resp->waiter.tensor;

	/* A matched tensor stays at its key */
	if (tensor && !resp->cancelled)
		resp->waiter.key = rdmatensor_rendezvous_key_get(tensor->key);
	rdmatensor_channel_unsend(&resp->tx);
	response_move(resp, RESPONSE_ERROR_QUEUED);
	rdmatensor_channel_contend(resp->channel);
	rdmatensor_channel_send(resp->channel, &resp->tx);
}

/* Of the content, which is what is wanted of the tensor */
static u64 response_content_bytes(const struct rdmatensor_response *resp)
{
	return resp->slice ? resp->slice->part.bytes : resp->waiter.tensor->meta.bytes;
}

static void response_describe(struct rdmatensor_response *resp)
{
	response_move(resp, RESPONSE_META_QUEUED);
	if (response_content_bytes(resp) <= RDMATENSOR_SHORT_BYTES)
		rdmatensor_channel_contend(resp->channel);
	rdmatensor_channel_send(resp->channel, &resp->tx);
}

/* The content has reached the peer, or, after a CANCEL, the writes that were posted */
static void response_written(struct rdmatensor_write *write)
{
	struct rdmatensor_response *resp = container_of(write, struct rdmatensor_response,
							write);
	struct rdmatensor_channel *channel = resp->channel;
	struct rdmatensor_publication *pub;
	bool delivered;
	LIST_HEAD(matches);

	spin_lock_bh(&channel->lock);
	delivered = !write->dropped;
	if (delivered) {
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_SERVED);
		rdmatensor_count_add(&channel->counters, RDMATENSOR_STAT_SERVED_BYTES,
				     write->bytes);
	}
	pub = response_take(resp);
	if (resp->cancelled)
		response_fail(resp);
	else
		response_free(resp);
	/* Not before the response is free: a queued content may bring the next request */
	rdmatensor_channel_written(channel, write);
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);

	rdmatensor_publication_put(pub, delivered, &matches);
	rdmatensor_rendezvous_work_off(&matches);
}

/* Where the content lies from the tensor's first byte on; NULL: all together, or there is none */
static const struct rdmatensor_cut *response_source(const struct rdmatensor_response *resp)
{
	const struct rdmatensor_publication *pub = to_publication(resp->waiter.tensor);

	if (!response_content_bytes(resp))
		return NULL;
	return resp->slice ? &resp->slice->cut : pub->layout ? &pub->layout->cut : NULL;
}

/* Where it is to lie. It is what the message said: its meta-data are the tensor's */
static const struct rdmatensor_cut *response_dest(struct rdmatensor_response *resp)
{
	if (!resp->layout)
		return NULL;
	rdmatensor_slice_cut(NULL, &resp->layout->layout, resp->slice ? &resp->slice->part :
			     &resp->waiter.tensor->meta, &resp->layout->cut);
	return &resp->layout->cut;
}

static void response_write(struct rdmatensor_response *resp)
{
	struct rdmatensor_publication *pub = to_publication(resp->waiter.tensor);
	struct rdmatensor_write *write = &resp->write;

	response_move(resp, RESPONSE_WRITING);
	write->index = resp->index;
	write->seq = resp->seq;
	write->pool = pub->pool;
	write->pool_offset = pub->offset;
	write->bytes = response_content_bytes(resp);
	write->cut = response_source(resp);
	write->dest = response_dest(resp);
	write->remote_addr = resp->remote_addr;
	write->seg_shift = resp->seg_shift;
	write->rkeys = resp->rkeys;
	write->done = response_written;
	write->nr_parts = resp->nr_parts;
	write->parts = resp->parts;
	rdmatensor_channel_write(resp->channel, write);
}

/* What is wanted of the tensor that it has got. Return: 0; -ERANGE: the tensor has no such slice */
static int response_cut(struct rdmatensor_response *resp)
{
	const struct rdmatensor_publication *pub = to_publication(resp->waiter.tensor);
	const struct rdmatensor_meta *whole = &pub->tensor.meta;
	struct response_slice *wanted = resp->slice;
	int ret;

	if (!wanted)
		return 0;
	ret = rdmatensor_slice_meta(&wanted->slice, whole, &wanted->part);
	if (ret)
		return ret;
	if (wanted->part.bytes)
		rdmatensor_slice_cut(&wanted->slice, pub->layout ? &pub->layout->layout : NULL,
				     whole, &wanted->cut);
	return 0;
}

/*
 * It holds its tensor. True: no longer, as it has failed; *delivered: the tensor counts as
 * delivered without a content
 */
static bool response_proceed(struct rdmatensor_response *resp, bool *delivered)
{
	const struct rdmatensor_tensor *tensor = resp->waiter.tensor;
	struct rdmatensor_core *core = resp->channel->core;

	if (tensor->failed.error) {
		rdmatensor_status_copy(&resp->waiter.status, &tensor->failed);
		response_fail(resp);
		*delivered = true;
		return true;
	}
	if (response_cut(resp)) {
		rdmatensor_slice_misfits(&resp->waiter.status, &resp->slice->slice, &tensor->meta);
		response_fail(resp);
		return true;
	}

	resp->validate |= READ_ONCE(core->validate);
	if (resp->validate) {
		response_move(resp, RESPONSE_CHECKSUM);
		queue_work(core->wq, &resp->checksum_work);
	} else if (resp->has_dest && rdmatensor_meta_equal(&resp->want, &tensor->meta)) {
		response_write(resp);
	} else {
		response_describe(resp);
	}
	return false;
}

/* The waiter has been matched, or its step aborted */
static void response_matched(struct rdmatensor_waiter *waiter, struct list_head *more)
{
	struct rdmatensor_response *resp = container_of(waiter, struct rdmatensor_response,
							waiter);
	struct rdmatensor_channel *channel = resp->channel;
	struct rdmatensor_publication *pub = NULL;
	bool delivered = false;

	/* response_free() may drop the response's reference */
	rdmatensor_channel_get(channel);
	spin_lock_bh(&channel->lock);
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING) {
		pub = response_take(resp);
		response_free(resp);
	} else if (resp->cancelled || !waiter->tensor) {
		pub = response_take(resp);
		response_fail(resp);
	} else if (response_proceed(resp, &delivered)) {
		pub = response_take(resp);
	}
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);

	if (pub)
		rdmatensor_publication_put(pub, delivered, more);
	rdmatensor_channel_put(channel);
}

static bool response_is_wanted(const struct rdmatensor_response *resp)
{
	return !READ_ONCE(resp->cancelled) &&
	       READ_ONCE(resp->channel->state) < RDMATENSOR_CHANNEL_CLOSING;
}

/* Return: whether @resp has the checksum of what it sends, or needs none any more */
static bool response_sum(struct rdmatensor_response *resp,
			 const struct rdmatensor_publication *pub)
{
	const struct rdmatensor_cut *cut = response_source(resp);
	u64 bytes = response_content_bytes(resp), pos, at, run;
	u32 crc = ~0U;

	if (bytes && !rdmatensor_pool_reachable(pub->pool))
		return false;
	/* It takes long, and what it is for may end meanwhile */
	for (pos = 0; pos < bytes && response_is_wanted(resp); pos += run) {
		at = pos;
		run = bytes;
		if (cut)
			at = rdmatensor_cut_at(cut, pos, &run);
		run = min3(run, bytes - pos, (u64)RDMATENSOR_CPU_BYTES);
		crc = rdmatensor_pool_crc(pub->pool, pub->offset + at, run, crc);
	}
	resp->checksum = bytes ? ~crc : 0;
	return true;
}

static void response_checksum(struct work_struct *work)
{
	struct rdmatensor_response *resp = container_of(work, struct rdmatensor_response,
							checksum_work);
	struct rdmatensor_publication *pub = to_publication(resp->waiter.tensor);
	struct rdmatensor_channel *channel = resp->channel;
	LIST_HEAD(matches);
	bool summed;

	/* In state CHECKSUM others only mark a response */
	summed = response_sum(resp, pub);

	rdmatensor_channel_get(channel);
	spin_lock_bh(&channel->lock);
	if (!summed && !resp->waiter.status.error)
		rdmatensor_status_set(&resp->waiter.status, -EOPNOTSUPP,
				      "checksum: the publisher's CPU cannot reach the tensor: switch validation off on both sides");
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING) {
		response_take(resp);
		response_free(resp);
	} else if (resp->cancelled || resp->waiter.status.error) {
		response_fail(resp);
		response_take(resp);
	} else {
		response_describe(resp);
		pub = NULL;
	}
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);

	if (pub)
		rdmatensor_publication_put(pub, false, &matches);
	rdmatensor_rendezvous_work_off(&matches);
	rdmatensor_channel_put(channel);
}

/*
 * The destination that is remembered under the message's number, from now or before. False:
 * there is none, and a request that refers to it has no destination
 */
static bool response_set_kept(struct rdmatensor_response *resp,
			      const struct rdmatensor_msg *msg)
{
	struct rdmatensor_kept *kept;

	kept = rdmatensor_kepts_get(&resp->channel->kepts, msg->keep);
	if (!kept)
		return false;
	resp->kept = kept;
	resp->has_dest = true;
	resp->want = kept->meta;
	resp->remote_addr = kept->remote_addr;
	resp->seg_shift = kept->seg_shift;
	resp->nr_parts = kept->nr_parts;
	resp->rkeys = kept->rkeys;
	return true;
}

/* Return: 0, -ENOMEM */
static int response_set_layout(struct rdmatensor_response *resp, const struct rdmatensor_msg *msg)
{
	if (!(msg->flags & RDMATENSOR_WIRE_F_LAYOUT))
		return 0;
	resp->layout = rdmatensor_should_fail() ? NULL :
		       kmalloc(sizeof(*resp->layout), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!resp->layout)
		return -ENOMEM;
	rdmatensor_wire_layout_get(msg->layout, &resp->layout->layout);
	return 0;
}

/* Return: 0, -ENOMEM */
static int response_set_dest(struct rdmatensor_response *resp,
			     const struct rdmatensor_msg *msg)
{
	response_forget_dest(resp);
	if (msg->flags & RDMATENSOR_WIRE_F_KEEP && response_set_kept(resp, msg))
		return 0;
	resp->has_dest = msg->flags & RDMATENSOR_WIRE_F_DEST;
	resp->want = msg->meta;
	resp->remote_addr = msg->remote_addr;
	resp->seg_shift = msg->seg_shift;
	resp->nr_parts = msg->nr_parts;
	if (msg->nr_rkeys > ARRAY_SIZE(resp->few_rkeys)) {
		resp->rkeys = rdmatensor_should_fail() ? NULL :
			      kmemdup(msg->rkeys, msg->nr_rkeys * sizeof(*resp->rkeys),
				      GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
		if (!resp->rkeys) {
			resp->rkeys = resp->few_rkeys;
			return -ENOMEM;
		}
	} else if (msg->nr_rkeys) {
		memcpy(resp->rkeys, msg->rkeys, msg->nr_rkeys * sizeof(*resp->rkeys));
	}
	return response_set_layout(resp, msg);
}

/* Return: 0, -ENOMEM */
static int response_set_slice(struct rdmatensor_response *resp, const struct rdmatensor_msg *msg)
{
	if (!(msg->flags & RDMATENSOR_WIRE_F_SLICE))
		return 0;
	resp->slice = rdmatensor_should_fail() ? NULL :
		      kmalloc(sizeof(*resp->slice), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!resp->slice)
		return -ENOMEM;
	rdmatensor_wire_slice_get(msg->slice, &resp->slice->slice);
	return 0;
}

/* The slice of the request, or none as that */
static bool response_is_same_slice(const struct rdmatensor_response *resp,
				   const struct rdmatensor_msg *msg)
{
	struct rdmatensor_slice slice;

	if (!(msg->flags & RDMATENSOR_WIRE_F_SLICE))
		return !resp->slice;
	rdmatensor_wire_slice_get(msg->slice, &slice);
	return resp->slice && !memcmp(&resp->slice->slice, &slice, sizeof(slice));
}

/* For a request that fails before it is in the table. Without memory no name is sent */
static void response_remember_name(struct rdmatensor_response *resp,
				   const struct rdmatensor_msg *msg)
{
	resp->waiter.key = rdmatensor_rendezvous_key_alloc(msg->name, msg->name_len,
							   GFP_ATOMIC | __GFP_ACCOUNT |
							   __GFP_NOWARN);
}

static int response_request(struct rdmatensor_channel *channel,
			    const struct rdmatensor_msg *msg, u64 seq, const char **why)
{
	const struct rdmatensor_wanted wanted = {
		.name = msg->name, .name_len = msg->name_len, .step_id = msg->step_id,
		.newest = msg->flags & RDMATENSOR_WIRE_F_NEWEST,
		.now = msg->flags & RDMATENSOR_WIRE_F_NOW,
	};
	struct rdmatensor_response *resp;
	LIST_HEAD(matches);
	int ret;

	spin_lock_bh(&channel->lock);
	/* Nobody would answer it */
	if (!rdmatensor_channel_usable(channel)) {
		ret = 0;
		goto out_unlock;
	}
	if (response_find(channel, msg->request_index)) {
		*why = "request index is in use already";
		ret = -EPROTO;
		goto out_unlock;
	}
	resp = response_new(channel, msg->request_index);
	if (!resp) {
		*why = "more requests outstanding than allowed";
		ret = -EPROTO;
		goto out_unlock;
	}

	resp->seq = seq;
	resp->step_id = msg->step_id;
	resp->validate = msg->flags & RDMATENSOR_WIRE_F_VALIDATE;
	ret = response_set_slice(resp, msg) ?: response_set_dest(resp, msg);
	if (ret) {
		resp->waiter.status.error = ret;
		response_remember_name(resp, msg);
		response_fail(resp);
		ret = 0;
		goto out_unlock;
	}
	spin_unlock_bh(&channel->lock);

	/* It may be matched, and gone, before this returns 1 */
	ret = rdmatensor_rendezvous_request(channel->core->rdv, &resp->waiter, &wanted,
					    GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (ret == 1)
		return 0;
	if (ret && ret != -ECANCELED)
		resp->waiter.status.error = ret;
	if (ret)
		response_remember_name(resp, msg);
	response_matched(&resp->waiter, &matches);
	rdmatensor_rendezvous_work_off(&matches);
	return 0;

out_unlock:
	spin_unlock_bh(&channel->lock);
	return ret;
}

static int response_re_request(struct rdmatensor_channel *channel,
			       const struct rdmatensor_msg *msg, u64 seq, const char **why)
{
	struct rdmatensor_response *resp = response_find(channel, msg->request_index);

	/* It crossed our ERROR_STATUS */
	if (!resp || resp->state == RESPONSE_ERROR_QUEUED) {
		rdmatensor_count(&channel->counters, RDMATENSOR_STAT_RX_STRAY);
		return 0;
	}
	if (resp->state != RESPONSE_META_SENT || resp->cancelled ||
	    msg->step_id != response_step(resp)) {
		*why = "TENSOR_RE_REQUEST out of turn";
		return -EPROTO;
	}
	if (!rdmatensor_meta_equal(&msg->meta, &resp->waiter.tensor->meta)) {
		*why = "TENSOR_RE_REQUEST with other meta-data than it was told";
		return -EPROTO;
	}
	if (!response_is_same_slice(resp, msg)) {
		*why = "TENSOR_RE_REQUEST of another slice";
		return -EPROTO;
	}

	resp->seq = seq;
	if (response_set_dest(resp, msg)) {
		/* The tensor goes back when the error has been queued */
		resp->waiter.status.error = -ENOMEM;
		return -ENOMEM;
	}
	response_write(resp);
	return 0;
}

static int response_cancel(struct rdmatensor_channel *channel,
			   const struct rdmatensor_msg *msg, const char **why,
			   struct rdmatensor_publication **pub)
{
	struct rdmatensor_response *resp = response_find(channel, msg->request_index);

	rdmatensor_channel_contend(channel);
	if (!resp) {
		/* Ended already: only the answer is owed */
		resp = response_new(channel, msg->request_index);
		if (!resp) {
			*why = "more requests outstanding than allowed";
			return -EPROTO;
		}
		WRITE_ONCE(resp->cancelled, true);
		response_fail(resp);
		return 0;
	}
	if (resp->cancelled) {
		*why = "second CANCEL of one request";
		return -EPROTO;
	}

	WRITE_ONCE(resp->cancelled, true);
	switch (resp->state) {
	case RESPONSE_WAITING:
		if (rdmatensor_rendezvous_cancel(channel->core->rdv, &resp->waiter))
			response_fail(resp);
		break;
	case RESPONSE_META_QUEUED:
	case RESPONSE_META_SENT:
		*pub = response_take(resp);
		response_fail(resp);
		break;
	case RESPONSE_WRITING:
		/* What is posted has to arrive first; nothing more will be */
		if (!rdmatensor_channel_drop(channel, &resp->write))
			break;
		rdmatensor_channel_written(channel, &resp->write);
		*pub = response_take(resp);
		response_fail(resp);
		break;
	default:
		/* CHECKSUM: when that is done. ERROR_QUEUED: becomes the answer */
		break;
	}
	return 0;
}

/*
 * The destination is remembered first, whatever becomes of the request: the peer refers to
 * it from now on
 */
static int response_keep(struct rdmatensor_channel *channel, const struct rdmatensor_msg *msg,
			 const char **why)
{
	if (!(channel->features & RDMATENSOR_WIRE_FEATURE_KEEP)) {
		*why = "kept destination without the feature";
		return -EPROTO;
	}
	if (!(msg->flags & RDMATENSOR_WIRE_F_DEST))
		return 0;
	spin_lock_bh(&channel->lock);
	rdmatensor_kepts_remember(&channel->kepts, msg);
	spin_unlock_bh(&channel->lock);
	return 0;
}

int rdmatensor_response_message(struct rdmatensor_channel *channel,
				const struct rdmatensor_msg *msg, u64 seq,
				const char **why)
{
	struct rdmatensor_publication *pub = NULL;
	struct rdmatensor_response *resp;
	LIST_HEAD(matches);
	int ret;

	if (msg->nr_parts > channel->nr_lanes) {
		*why = "more parts than lanes";
		return -EPROTO;
	}
	if (msg->flags & RDMATENSOR_WIRE_F_SLICE &&
	    !(channel->features & RDMATENSOR_WIRE_FEATURE_SLICE)) {
		*why = "slice without the feature";
		return -EPROTO;
	}
	if (msg->flags & RDMATENSOR_WIRE_F_LAYOUT &&
	    !(channel->features & RDMATENSOR_WIRE_FEATURE_LAYOUT)) {
		*why = "layout without the feature";
		return -EPROTO;
	}
	if (msg->flags & (RDMATENSOR_WIRE_F_NEWEST | RDMATENSOR_WIRE_F_NOW) &&
	    !(channel->features & RDMATENSOR_WIRE_FEATURE_NEWEST)) {
		*why = "newest step, or an answer at once, without the feature";
		return -EPROTO;
	}
	if (msg->flags & RDMATENSOR_WIRE_F_KEEP) {
		ret = response_keep(channel, msg, why);
		if (ret)
			return ret;
	}
	if (msg->type == RDMATENSOR_WIRE_TENSOR_REQUEST)
		return response_request(channel, msg, seq, why);

	spin_lock_bh(&channel->lock);
	if (msg->type == RDMATENSOR_WIRE_CANCEL) {
		ret = response_cancel(channel, msg, why, &pub);
	} else {
		ret = response_re_request(channel, msg, seq, why);
		if (ret == -ENOMEM) {
			resp = response_find(channel, msg->request_index);
			response_fail(resp);
			pub = response_take(resp);
			ret = 0;
		}
	}
	spin_unlock_bh(&channel->lock);

	if (pub)
		rdmatensor_publication_put(pub, false, &matches);
	rdmatensor_rendezvous_work_off(&matches);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_response_message);

static size_t response_bytes(const struct rdmatensor_channel *channel)
{
	struct rdmatensor_response *resp;

	return ALIGN(struct_size(resp, parts, channel->nr_lanes), __alignof__(*resp));
}

static u32 response_count(const struct rdmatensor_channel *channel)
{
	return 2 * channel->params->max_requests;
}

static struct rdmatensor_response *response_at(struct rdmatensor_channel *channel, u32 i)
{
	return channel->response_mem + i * response_bytes(channel);
}

int rdmatensor_response_alloc(struct rdmatensor_channel *channel)
{
	u32 i;

	channel->response_mem = kvcalloc(response_count(channel), response_bytes(channel),
					 RDMATENSOR_GFP_SPARING);
	if (!channel->response_mem)
		return -ENOMEM;

	for (i = 0; i < response_count(channel); i++) {
		struct rdmatensor_response *resp = response_at(channel, i);
		int j;

		resp->channel = channel;
		INIT_HLIST_NODE(&resp->node);
		INIT_LIST_HEAD(&resp->waiter.item);
		resp->waiter.matched = response_matched;
		INIT_LIST_HEAD(&resp->tx.item);
		resp->tx.fill = response_fill;
		resp->tx.posted = response_posted;
		INIT_WORK(&resp->checksum_work, response_checksum);
		resp->rkeys = resp->few_rkeys;
		for (j = 0; j < channel->nr_lanes; j++)
			INIT_LIST_HEAD(&resp->parts[j].item);
		list_add_tail(&resp->free, &channel->free_responses);
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_response_alloc);

void rdmatensor_response_abort_step(struct rdmatensor_channel *channel, s64 step_id,
				    const struct rdmatensor_status *status)
{
	LIST_HEAD(matches);
	u32 i;

	for (i = 0; i < response_count(channel); i++) {
		struct rdmatensor_response *resp = response_at(channel, i);
		struct rdmatensor_publication *pub = NULL;

		spin_lock_bh(&channel->lock);
		if (resp->state == RESPONSE_CHECKSUM && response_step(resp) == step_id) {
			rdmatensor_status_copy(&resp->waiter.status, status);
		} else if ((resp->state == RESPONSE_META_QUEUED ||
			    resp->state == RESPONSE_META_SENT) &&
			   response_step(resp) == step_id) {
			rdmatensor_status_copy(&resp->waiter.status, status);
			response_fail(resp);
			pub = response_take(resp);
			rdmatensor_channel_pump(channel);
		}
		spin_unlock_bh(&channel->lock);

		if (pub)
			rdmatensor_publication_put(pub, false, &matches);
	}
	rdmatensor_rendezvous_work_off(&matches);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_response_abort_step);

void rdmatensor_response_down(struct rdmatensor_channel *channel)
{
	LIST_HEAD(matches);
	u32 i;

	for (i = 0; channel->response_mem && i < response_count(channel); i++) {
		struct rdmatensor_response *resp = response_at(channel, i);
		struct rdmatensor_publication *pub = NULL;

		spin_lock_bh(&channel->lock);
		switch (resp->state) {
		case RESPONSE_FREE:
		case RESPONSE_CHECKSUM:
			break;
		case RESPONSE_WAITING:
			if (rdmatensor_rendezvous_cancel(channel->core->rdv,
							 &resp->waiter))
				response_free(resp);
			break;
		default:
			pub = response_take(resp);
			response_free(resp);
			break;
		}
		spin_unlock_bh(&channel->lock);

		if (pub)
			rdmatensor_publication_put(pub, false, &matches);
	}
	rdmatensor_rendezvous_work_off(&matches);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_response_down);
