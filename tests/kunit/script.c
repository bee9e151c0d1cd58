// SPDX-License-Identifier: GPL-2.0
/*
 * Scripts: an end whose peer is played by hand. See script.h.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include "fetch/fetch.h"
#include "fetch/listing.h"
#include "memory/domain.h"
#include "script.h"

char script_text[RDMATENSOR_STATUS_TEXT_MAX];

static void trace_message(struct script_end *script, const struct post *post)
{
	static const char * const names[] = {
		[RDMATENSOR_WIRE_HELLO] = "hello",
		[RDMATENSOR_WIRE_TENSOR_REQUEST] = "req",
		[RDMATENSOR_WIRE_META_DATA_RESPONSE] = "meta",
		[RDMATENSOR_WIRE_TENSOR_RE_REQUEST] = "re",
		[RDMATENSOR_WIRE_ERROR_STATUS] = "err",
		[RDMATENSOR_WIRE_CANCEL] = "cancel",
		[RDMATENSOR_WIRE_LIST] = "list",
		[RDMATENSOR_WIRE_LIST_INFO] = "info",
	};
	struct rdmatensor_msgbuf *msgbuf = &script->end->channel->msgbuf;
	const void *slot = rdmatensor_msgbuf_tx_slot(msgbuf, post->seq);
	struct rdmatensor_msg msg;
	const char *why = "";

	if (rdmatensor_wire_decode(slot, post->bytes, &msg, &why)) {
		seq_buf_printf(&script->trace, " BAD(%s)", why);
		return;
	}
	script->last = msg;
	if (msg.type == RDMATENSOR_WIRE_HELLO)
		seq_buf_puts(&script->trace, " hello");
	else if (msg.flags & RDMATENSOR_WIRE_F_CANCELLED)
		seq_buf_printf(&script->trace, " cancelled#%u", msg.request_index);
	else
		seq_buf_printf(&script->trace, " %s#%u", names[msg.type], msg.request_index);
	if (msg.type == RDMATENSOR_WIRE_ERROR_STATUS &&
	    !(msg.flags & RDMATENSOR_WIRE_F_CANCELLED))
		seq_buf_printf(&script->trace, ":%d", msg.error);
	if (msg.type == RDMATENSOR_WIRE_LIST_INFO)
		seq_buf_printf(&script->trace, ":%d", msg.error ?: (int)msg.nr_entries);
	if (msg.cursor)
		seq_buf_printf(&script->trace, "@%llx", msg.cursor);
	if (msg.flags & RDMATENSOR_WIRE_F_NAMED)
		seq_buf_printf(&script->trace, "+%.*s@%lld", min_t(int, msg.name_len, 8), msg.name,
			       msg.step_id);
	if (msg.type == RDMATENSOR_WIRE_ERROR_STATUS && msg.text_len)
		seq_buf_printf(&script->trace, "+text%u", msg.text_len);
	if (msg.type == RDMATENSOR_WIRE_ERROR_STATUS && msg.text_len >= 3 &&
	    !memcmp(msg.text + msg.text_len - 3, "...", 3))
		seq_buf_puts(&script->trace, "+...");
	if (msg.flags & RDMATENSOR_WIRE_F_DEST)
		seq_buf_puts(&script->trace, "+dest");
	if (msg.flags & RDMATENSOR_WIRE_F_VALIDATE)
		seq_buf_puts(&script->trace, "+val");
	if (msg.flags & RDMATENSOR_WIRE_F_CHECKSUM)
		seq_buf_puts(&script->trace, "+sum");
	if (msg.flags & RDMATENSOR_WIRE_F_KEEP)
		seq_buf_printf(&script->trace, "+keep:%u", msg.keep);
}

/* One of a run of registrations or invalidations, which is told with its last one. Return: @run */
static u32 trace_key(struct script_end *script, u8 lane, const struct post *post, u32 run)
{
	struct rdmatensor_channel *channel = script->end->channel;
	bool more;

	spin_lock_bh(&channel->lock);
	more = !list_is_last(&post->item, &script->end->posted[lane]) &&
	       list_next_entry(post, item)->kind == post->kind;
	spin_unlock_bh(&channel->lock);
	if (more)
		return run;
	seq_buf_puts(&script->trace, post->kind == POST_REGISTRATION ? " reg" : " inv");
	if (run > 1)
		seq_buf_printf(&script->trace, "%u", run);
	return 0;
}

/* Messages and acks at the head of lane 0 are completed, writes only looked at */
static void trace_posts(struct script_end *script)
{
	struct end *end = script->end;
	struct post *post;
	u32 run = 0;
	u8 lane;

	for (lane = 0; lane < end->channel->nr_lanes; lane++) {
		while ((post = end_arrive(end, lane))) {
			if (post->kind == POST_MESSAGE)
				trace_message(script, post);
			else if (post->kind == POST_ACK)
				seq_buf_puts(&script->trace, " ack");
			else if (post->kind == POST_PROBE)
				seq_buf_printf(&script->trace, " probe%u", lane);
			else if (post->kind != POST_WRITE)
				run = trace_key(script, lane, post, run + 1);
			else
				seq_buf_printf(&script->trace, " w%u#%u:%llu%s", lane,
					       post->index, post->bytes,
					       post->last ? "!" : "");
		}
	}
	while (!script->slow && (post = end_first(end, 0)) && post->arrived &&
	       post->kind != POST_WRITE)
		end_complete(end, 0);
}

static void trace_entry(struct script_end *script, const struct rdmatensor_cqe *cqe)
{
	static const char * const names[] = {
		[RDMATENSOR_CQE_FETCH] = "end",
		[RDMATENSOR_CQE_PUBLISH] = "pub",
		[RDMATENSOR_CQE_WITHDRAW] = "wd",
		[RDMATENSOR_CQE_LIST] = "list",
	};

	seq_buf_printf(&script->trace, " %s%llu:%d", names[cqe->type], cqe->user_data,
		       cqe->result);
	if (cqe->type == RDMATENSOR_CQE_LIST && cqe->tensor_bytes)
		seq_buf_printf(&script->trace, "=%llu", cqe->tensor_bytes);
	if (cqe->type == RDMATENSOR_CQE_LIST && !cqe->result && cqe->cursor)
		seq_buf_printf(&script->trace, "@%llx", cqe->cursor);
	if (cqe->flags & RDMATENSOR_CQE_DEAD)
		seq_buf_puts(&script->trace, "+dead");
	if (cqe->flags & RDMATENSOR_CQE_VALIDATED)
		seq_buf_puts(&script->trace, "+ok");
	if (cqe->flags & RDMATENSOR_CQE_TEXT)
		seq_buf_puts(&script->trace, "+text");
	if (cqe->flags & RDMATENSOR_CQE_MORE)
		seq_buf_printf(&script->trace, "+more%u", cqe->text_id);
}

const char *script_trace(struct script_end *script)
{
	struct end *end = script->end;
	struct rdmatensor_cqe cqe;
	size_t before;

	seq_buf_clear(&script->trace);
	do {
		before = script->trace.len;
		if (!script->held)
			flush_workqueue(end->core.wq);
		trace_posts(script);
	} while (script->trace.len != before);
	while (end_reap(end, &cqe))
		trace_entry(script, &cqe);
	if (end->up) {
		seq_buf_puts(&script->trace, " up");
		end->up = 0;
	}
	if (!script->told_down && end->channel->state == RDMATENSOR_CHANNEL_CLOSING) {
		script->told_down = true;
		seq_buf_printf(&script->trace, " down:%d(%s)", end->channel->error,
			       end->channel->error_text);
	}
	return script->text + !!script->trace.len;
}

struct script_end *script_open(struct kunit *test, u8 lanes,
			       const struct rdmatensor_channel_params *params)
{
	struct script_end *script = kunit_kzalloc(test, sizeof(*script), GFP_KERNEL);
	unsigned int i;

	for (i = 0; i < sizeof(script_text); i++)
		script_text[i] = 'a' + i % 26;
	KUNIT_ASSERT_NOT_NULL(test, script);
	seq_buf_init(&script->trace, script->text, sizeof(script->text));
	init_completion(&script->go);
	script->end = end_open(test, lanes, 32 << END_SEG_SHIFT, params);
	return script;
}

void script_rx(struct script_end *script, const struct rdmatensor_msg *msg)
{
	struct end *end = script->end;
	__le32 rkeys[64] = {};
	struct rdmatensor_msg full = *msg;
	u32 bytes;

	full.step_id = full.step_id ?: 1;
	if (full.flags & RDMATENSOR_WIRE_F_DEST) {
		full.nr_rkeys = rdmatensor_wire_segments(full.remote_addr, full.meta.bytes,
							 full.seg_shift);
		full.rkeys = rkeys;
		if (!full.meta.bytes)
			full.remote_addr = 0;
	}
	bytes = end_put_message(end, &full, end->channel->credits.sent);
	rdmatensor_channel_rx_message(end->channel, bytes);
}

void script_up(struct script_end *script)
{
	struct rdmatensor_msg hello = {
		.type = RDMATENSOR_WIRE_HELLO,
		.max_requests = script->end->channel->params->max_requests,
		.features = script->features,
		.text = "peer",
		.text_len = 4,
	};
	struct rdmatensor_wire_private private;
	const char *why;

	end_private(script->end->channel->params, &private);
	KUNIT_ASSERT_EQ(script->end->test,
			rdmatensor_channel_set_peer(script->end->channel, &private, &why), 0);
	script_rx(script, &hello);
	KUNIT_EXPECT_STREQ(script->end->test, script_trace(script), "hello up");
}

/* The first elements; NULL: all are wanted */
static struct rdmatensor_fetch_slice *script_slice(struct script_end *script,
						   const struct script_step *step)
{
	struct rdmatensor_fetch_slice *wanted;

	if (!step->slice)
		return NULL;
	wanted = kzalloc(sizeof(*wanted), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(script->end->test, wanted);
	wanted->slice.ndims = 1;
	wanted->slice.ranges[0].length = step->slice;
	rdmatensor_wire_slice_put(&wanted->slice, &wanted->wire);
	return wanted;
}

static int script_fetch(struct script_end *script, const struct script_step *step)
{
	struct end *end = script->end;
	struct rdmatensor_pool *pool = step->proxied ? end->other : end->pool;
	struct rdmatensor_fetch_args args = {
		.user_data = step->id,
		.name = step->name,
		.name_len = strlen(step->name),
		.step_id = step->step_id ?: 1,
		.pool = pool,
		.proxy = step->proxied ? end->pool : NULL,
		.bytes = step->bytes,
		.alloc = !step->place,
		.keep = step->keep,
		.slice = script_slice(script, step),
	};
	int ret;

	if (step->again)
		args.offset = script->place;
	else if (step->place && step->bytes)
		KUNIT_ASSERT_EQ(end->test, rdmatensor_regions_alloc(&pool->regions,
								    step->bytes, GFP_KERNEL,
								    &args.offset), 0);
	script->place = args.offset;
	rdmatensor_pool_get(pool);
	if (args.proxy)
		rdmatensor_pool_get(args.proxy);
	ret = rdmatensor_request_submit(end->channel, &args);
	if (ret)
		rdmatensor_pool_put(pool);
	if (ret)
		kfree(args.slice);
	if (ret && args.proxy)
		rdmatensor_pool_put(args.proxy);
	return ret;
}

static int script_list(struct script_end *script, const struct script_step *step)
{
	struct end *end = script->end;
	struct rdmatensor_listing_args args = {
		.user_data = step->id,
		.prefix = step->name,
		.prefix_len = strlen(step->name),
		.cursor = step->msg.cursor,
		.pool = end->pool,
		.bytes = step->bytes,
	};
	int ret;

	KUNIT_ASSERT_EQ(end->test, rdmatensor_regions_alloc(&end->pool->regions, step->bytes,
							    GFP_KERNEL, &args.offset), 0);
	script->place = args.offset;
	rdmatensor_pool_get(end->pool);
	ret = rdmatensor_listing_submit(end->channel, &args);
	if (ret)
		rdmatensor_pool_put(end->pool);
	return ret;
}

static int script_publish(struct script_end *script, const struct script_step *step)
{
	struct end *end = script->end;
	struct rdmatensor_publish_args args = {
		.user_data = step->id,
		.name = step->name,
		.name_len = strlen(step->name),
		.step_id = step->step_id ?: 1,
		.uses = step->uses,
		.meta = SCRIPT_META(step->bytes),
	};
	int ret;

	if (step->dead)
		args.meta = (struct rdmatensor_meta)SCRIPT_DEAD;
	if (step->bytes) {
		KUNIT_ASSERT_EQ(end->test, rdmatensor_regions_alloc(&end->pool->regions,
								    step->bytes, GFP_KERNEL,
								    &args.offset), 0);
		args.pool = end->pool;
		rdmatensor_pool_get(end->pool);
	}
	if (step->error)
		rdmatensor_status_say(&args.failed, step->error, script_text, step->text_len,
				      GFP_KERNEL);
	ret = rdmatensor_publish(&end->core, &args);
	if (ret && args.pool)
		rdmatensor_pool_put(end->pool);
	rdmatensor_status_clear(&args.failed);
	return ret;
}

static void script_hold(struct work_struct *work)
{
	wait_for_completion(&container_of(work, struct script_end, hold)->go);
}

static void script_go(struct script_end *script)
{
	if (!script->held)
		return;
	complete_all(&script->go);
	flush_workqueue(script->end->core.wq);
	script->end->register_go = NULL;
	script->held = false;
}

static void script_full(struct script_end *script, bool full)
{
	struct rdmatensor_channel *channel = script->end->channel;

	spin_lock_bh(&channel->lock);
	if (full) {
		script->free_places += channel->lanes[0].sendq_free;
		channel->lanes[0].sendq_free = 0;
	} else {
		channel->lanes[0].sendq_free += script->free_places;
		script->free_places = 0;
		rdmatensor_channel_pump(channel);
	}
	spin_unlock_bh(&channel->lock);
}

static void script_places(struct script_end *script, u32 nr)
{
	struct rdmatensor_channel *channel = script->end->channel;

	spin_lock_bh(&channel->lock);
	channel->lanes[0].sendq_free += nr;
	script->free_places -= nr;
	rdmatensor_channel_pump(channel);
	spin_unlock_bh(&channel->lock);
}

static void script_done(struct script_end *script)
{
	struct end *end = script->end;
	u8 lane;

	for (lane = 0; lane < end->channel->nr_lanes; lane++)
		while (end_first(end, lane) && end_first(end, lane)->arrived)
			end_complete(end, lane);
}

void script_do(struct script_end *script, const struct script_step *step)
{
	struct end *end = script->end;
	const char *trace;
	const u64 id = step->id;
	int ret = 0;

	switch (step->op) {
	case OP_FETCH:
		ret = script_fetch(script, step);
		break;
	case OP_CANCEL:
		ret = rdmatensor_operation_cancel(&end->core, step->id) == 1 ? 0 : -ENOENT;
		break;
	case OP_EXPIRE:
		ret = end_expire(end, step->id) ? 0 : -ENOENT;
		break;
	case OP_ABORT:
		end_abort_step(end, step->step_id, step->error);
		break;
	case OP_PUBLISH:
		ret = script_publish(script, step);
		break;
	case OP_LIST:
		ret = script_list(script, step);
		break;
	case OP_WITHDRAW:
		ret = rdmatensor_withdraw(&end->core, &id, step->name,
					  strlen(step->name), 1, 0);
		break;
	case OP_RX:
		script_rx(script, &step->msg);
		break;
	case OP_RX_ACK:
		rdmatensor_channel_rx_ack(end->channel);
		break;
	case OP_CONTENT:
		rdmatensor_channel_rx_content(end->channel, step->lane,
					      step->msg.request_index, step->bytes);
		break;
	case OP_DONE:
		script_done(script);
		break;
	case OP_FULL:
	case OP_ROOM:
		script_full(script, step->op == OP_FULL);
		break;
	case OP_PLACES:
		script_places(script, step->bytes);
		break;
	case OP_HOLD:
		reinit_completion(&script->go);
		INIT_WORK(&script->hold, script_hold);
		queue_work(end->core.wq, &script->hold);
		script->held = true;
		break;
	case OP_HOLD_KEYS:
		reinit_completion(&script->go);
		reinit_completion(&end->registering);
		end->register_go = &script->go;
		script->held = true;
		break;
	case OP_REGISTERING:
		wait_for_completion(&end->registering);
		break;
	case OP_BREAK_KEYS:
		end->register_error = step->error;
		end->register_good = step->bytes;
		break;
	case OP_GO:
		script_go(script);
		break;
	case OP_BREAK:
		end->post_error = step->error;
		break;
	case OP_LIE:
		*(u8 *)end_at(end, script->place, NULL) ^= 1;
		break;
	case OP_DOWN:
		end_down(end);
		break;
	case OP_SILENT:
		spin_lock_bh(&end->channel->lock);
		end->channel->said_at = jiffies - MAX_JIFFY_OFFSET / 4;
		spin_unlock_bh(&end->channel->lock);
		break;
	case OP_END:
		break;
	}

	KUNIT_EXPECT_EQ_MSG(end->test, ret, step->ret, "line %d", step->line);
	trace = script_trace(script);
	KUNIT_EXPECT_STREQ_MSG(end->test, trace, step->expect, "line %d", step->line);
}

void script_pool_is_free(struct script_end *script)
{
	struct end *end = script->end;
	u64 offset;

	if (!RB_EMPTY_ROOT(&end->core.operations))
		return;
	KUNIT_EXPECT_EQ(end->test, rdmatensor_regions_alloc(&end->pool->regions, end->pool->bytes,
							    GFP_KERNEL, &offset), 0);
}

void script_close(struct script_end *script)
{
	script_go(script);
	end_close(script->end);
}

void script_name(const struct script *script, char *desc)
{
	strscpy(desc, script->name, KUNIT_PARAM_DESC_SIZE);
}

void script_run(struct kunit *test, const struct script *script)
{
	struct rdmatensor_channel_params params = end_params;
	const struct script_step *step;
	struct script_end *s;

	if (script->max_requests)
		params.max_requests = script->max_requests;
	if (script->slot_bytes)
		params.msg_slot_bytes = script->slot_bytes;
	params.strict = script->strict;
	params.unlisted = script->unlisted;
	s = script_open(test, script->lanes ?: 1, &params);
	s->features = script->features;
	if (s->end->domain)
		s->end->domain->apart = script->apart;
	script_up(s);
	WRITE_ONCE(s->end->core.validate, script->validate);
	s->end->pool->memory->unreachable = script->unreachable;
	if (script->peers) {
		end_add_pool(s->end, 32 << END_SEG_SHIFT, script->peers);
		s->end->other->memory->unreachable = script->other_unreachable;
	}
	for (step = script->steps; step->op != OP_END; step++)
		script_do(s, step);
	if (script->peers)
		script_pool_is_free(s);
	script_close(s);
	KUNIT_EXPECT_EQ_MSG(test, s->end->left, script->left, "tensors still offered");
}
