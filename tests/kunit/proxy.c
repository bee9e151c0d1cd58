// SPDX-License-Identifier: GPL-2.0
/*
 * Fetches to where a peer cannot write: in every state, whatever ends them, with the words of
 * script.h; and that the bytes come to their place, and only then.
 */
#include "memory/memory.h"
#include "script.h"

/* CRC32C of 100 zeros, which is what a new region holds */
#define ZEROS_SUM 0x07cb9ff6

/* Ways into a state, of a destination that has a proxy */
#define SENT		FETCH_PROXIED(1, "x", 100, "req#0")
#define RE_QUEUED	SENT, FULL, META(0, 100, "")
#define RE_SENT		SENT, META(0, 100, "re#0+dest")
#define KNOWN		RE_SENT, CONTENT(0, 0, 100, "end1:0")
#define DIRECT		KNOWN, FETCH_PROXIED(2, "x", 100, "req#1+dest")
#define CANCEL_QUEUED	DIRECT, FULL, CANCEL(2, "")
#define CANCEL_SENT	DIRECT, CANCEL(2, "cancel#1")
#define COPYING		RE_SENT, HOLD, CONTENT(0, 0, 100, "")
#define NONE		.peers = RDMATENSOR_POOL_PEERS_NONE
#define NOT_ASKED "down:-71(content that was not asked for)"

static const struct script scripts[] = {
	{ "first fetch", NONE, .steps = {
		KNOWN,
	} },
	{ "known tensor", NONE, .steps = {
		DIRECT, CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "peers may read", .peers = RDMATENSOR_POOL_PEERS_READ, .steps = {
		DIRECT, CONTENT(0, 1, 100, "end2:0"),
	} },
	{ "known tensor that has changed", NONE, .steps = {
		KNOWN, FETCH_PROXIED(2, "x", 200, "req#1+dest"),
		META(1, 200, "re#1+dest"), CONTENT(0, 1, 200, "end2:0"),
	} },
	{ "empty", NONE, .steps = {
		FETCH_PROXIED(1, "x", 0, "req#0"), META(0, 0, "re#0+dest"),
		CONTENT(0, 0, 0, "end1:0"),
	} },
	{ "empty by now", NONE, .steps = {
		DIRECT, META(1, 0, "re#1+dest"), CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "dead", NONE, .steps = {
		SENT, RX("re#0+dest", .type = RDMATENSOR_WIRE_META_DATA_RESPONSE,
			 .request_index = 0, .meta = SCRIPT_DEAD),
		CONTENT(0, 0, 0, "end1:0+dead"),
	} },
	{ "too long for its place", NONE, .steps = {
		SENT, META(0, 101, "cancel#0"), CANCELLED(0, "end1:-90"),
	} },
	{ "too long for its place by now", NONE, .steps = {
		DIRECT, META(1, 101, "cancel#1"), CANCELLED(1, "end2:-90"),
	} },
	{ "too long for the pool", NONE, .steps = {
		FETCH_PROXIED(1, "x", 200000, "req#0"), FETCH_PROXIED(2, "y", 1000, "req#1"),
		META(0, 200000, "re#0+dest"), META(1, 1000, "re#1+dest"),
		CONTENT(0, 1, 1000, "end2:0"),
		FETCH(3, "z", "req#2"), META(2, 80000, "cancel#2"), CANCELLED(2, "end3:-28"),
		CONTENT(0, 0, 3392, "end1:0"),
	} },
	{ "no room", NONE, .steps = {
		FETCH(1, "z", "req#0"), META(0, 200000, "re#0+dest"),
		FETCH_PROXIED(2, "x", 100000, "req#1"), META(1, 100000, "cancel#1"),
		CANCELLED(1, "end2:-28+text"), ERR(0, -5, "end1:-5"),
	} },
	{ "unreachable", NONE, .other_unreachable = true, .steps = {
		SENT, META(0, 100, "cancel#0"), CANCELLED(0, "end1:-95+text"),
		FETCH_PROXIED(2, "y", 0, "req#1"), META(1, 0, "re#1+dest"),
		CONTENT(0, 1, 0, "end2:0"),
	} },
	{ "unreachable, the sum of nothing", NONE, .other_unreachable = true, .steps = {
		FETCH_PROXIED(1, "x", 0, "req#0"), META_SUM(0, 0, 0, "re#0+dest"),
		CONTENT(0, 0, 0, "end1:0+ok"),
	} },
	{ "from where it is unreachable", NONE, .unreachable = true, .steps = {
		SENT, META(0, 100, "cancel#0"), CANCELLED(0, "end1:-95+text"),
	} },

	{ "sent, cancelled", NONE, .steps = {
		SENT, CANCEL(1, "cancel#0"), CANCELLED(0, "end1:-125"),
	} },
	{ "sent, failed", NONE, .steps = {
		SENT, ERR(0, -5, "end1:-5"),
	} },
	{ "sent, cut", NONE, .steps = {
		SENT, DOWN("end1:-104+text"),
	} },
	{ "re-queued, cancelled", NONE, .steps = {
		RE_QUEUED, CANCEL(1, ""), ROOM("cancel#0"), CANCELLED(0, "end1:-125"),
	} },
	{ "re-queued, cut", NONE, .steps = {
		RE_QUEUED, DOWN("end1:-104+text"),
	} },
	{ "re-sent, expired", NONE, .steps = {
		RE_SENT, EXPIRE(1, "cancel#0"), CANCELLED(0, "end1:-110"),
	} },
	{ "re-sent, aborted", NONE, .steps = {
		RE_SENT, ABORT(1, -5, "cancel#0"), CANCELLED(0, "end1:-5"),
	} },
	{ "re-sent, failed", NONE, .steps = {
		RE_SENT, ERR(0, -5, "end1:-5"),
	} },
	{ "re-sent, cut", NONE, .steps = {
		RE_SENT, DOWN("end1:-104+text"),
	} },
	{ "direct, failed", NONE, .steps = {
		DIRECT, ERR(1, -5, "end2:-5"),
	} },
	{ "cancel queued, content", NONE, .steps = {
		CANCEL_QUEUED, CONTENT(0, 1, 100, "end2:0"), ROOM(""),
	} },
	{ "cancel sent, content", NONE, .steps = {
		CANCEL_SENT, CONTENT(0, 1, 100, "end2:0"), CANCELLED(1, ""),
	} },
	{ "cancel sent, content, copied later", NONE, .steps = {
		CANCEL_SENT, HOLD, CONTENT(0, 1, 100, ""), CANCELLED(1, ""), GO("end2:0"),
	} },
	{ "cancel sent, cut", NONE, .steps = {
		CANCEL_SENT, DOWN("end2:-104+text"),
	} },

	{ "copying, cancelled", NONE, .steps = {
		COPYING, CANCEL(1, ""), GO("end1:0"),
	} },
	{ "copying, expired", NONE, .steps = {
		COPYING, EXPIRE(1, ""), GO("end1:0"),
	} },
	{ "copying, aborted", NONE, .steps = {
		COPYING, ABORT(1, -5, ""), GO("end1:0"),
	} },
	{ "copying, content", NONE, .steps = {
		COPYING, CONTENT(0, 0, 100, NOT_ASKED), GO("end1:0"),
	} },
	{ "copying, cut", NONE, .steps = {
		COPYING, DOWN(""), GO("end1:0"),
	} },
	{ "copying, beside another", NONE, .steps = {
		COPYING, FETCH_PROXIED(2, "x", 100, "req#1+dest"), GO("end1:0"),
		CONTENT(0, 1, 100, "end2:0"),
	} },

	{ "validated", NONE, .validate = true, .steps = {
		FETCH_PROXIED(1, "x", 100, "req#0+val"), META_SUM(0, 100, ZEROS_SUM, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:0+ok"),
	} },
	{ "validated, and wrong", NONE, .validate = true, .steps = {
		FETCH_PROXIED(1, "x", 100, "req#0+val"), META_SUM(0, 100, 1, "re#0+dest"),
		CONTENT(0, 0, 100, "end1:-74+text"),
	} },
	{ "validated, unreachable", NONE, .validate = true, .other_unreachable = true, .steps = {
		STEP("", .op = OP_FETCH, .id = 1, .name = "x", .bytes = 100, .place = true,
		     .proxied = true, .ret = -EOPNOTSUPP),
	} },
	{ "striped", .lanes = 2, NONE, .steps = {
		FETCH_PROXIED(1, "x", 20480, "req#0"), META(0, 20480, "re#0+dest"),
		CONTENT(1, 0, 4096, ""), CONTENT(0, 0, 4096, "end1:0"),
	} },
	{ "striped, a part missing", .lanes = 2, NONE, .steps = {
		FETCH_PROXIED(1, "x", 20480, "req#0"), META(0, 20480, "re#0+dest"),
		CONTENT(0, 0, 4096, ""), CANCEL(1, "cancel#0"), CANCELLED(0, ""),
		CONTENT(1, 0, 4096, "end1:0"),
	} },
};

KUNIT_ARRAY_PARAM(proxy, scripts, script_name);

static void proxy(struct kunit *test)
{
	script_run(test, test->param_value);
}

#define BYTES 9000
#define HOME (3 << END_SEG_SHIFT)

/**
 * struct flight - one fetch with a proxy, up to its content
 * @script: the end
 * @pool: of the destination
 * @at: where it is in @pool
 */
struct flight {
	struct script_end *script;
	struct rdmatensor_pool *pool;
	u64 at;
};

static u8 *flight_at(const struct rdmatensor_pool *pool, u64 offset)
{
	return rdmatensor_memory_addr(pool->memory, offset, NULL);
}

static void ask(struct flight *flight, u64 id, const char *expect)
{
	struct end *end = flight->script->end;
	struct rdmatensor_fetch_args args = {
		.user_data = id, .name = "x", .name_len = 1, .step_id = 1,
		.pool = flight->pool, .offset = flight->at, .bytes = BYTES, .proxy = end->pool,
	};

	rdmatensor_pool_get(args.pool);
	rdmatensor_pool_get(args.proxy);
	KUNIT_ASSERT_EQ(end->test, rdmatensor_request_submit(end->channel, &args), 0);
	KUNIT_EXPECT_STREQ(end->test, script_trace(flight->script), expect);
}

/* In a pool for @peers, whose keys change every 1 << @seg_shift bytes */
static void take_off(struct kunit *test, struct flight *flight, enum rdmatensor_pool_peers peers,
		     u8 seg_shift)
{
	struct rdmatensor_channel_params params = end_params;
	struct end *end;

	flight->script = script_open(test, 1, &params);
	end = flight->script->end;
	script_up(flight->script);
	flight->pool = end_add_pool(end, 32 << END_SEG_SHIFT, peers);
	flight->pool->reg.seg_shift = seg_shift;
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc(&flight->pool->regions, HOME + BYTES,
						       GFP_KERNEL, &flight->at), 0);
	flight->at += HOME;
}

/* What is in @pool at @offset, and whether it is */
static void put(struct rdmatensor_pool *pool, u64 offset, u8 seed)
{
	u64 i;

	for (i = 0; i < BYTES; i++)
		*flight_at(pool, offset + i) = i * 7 + seed;
}

static bool holds(struct rdmatensor_pool *pool, u64 offset, u8 seed)
{
	u64 i;

	for (i = 0; i < BYTES; i++)
		if (*flight_at(pool, offset + i) != (u8)(i * 7 + seed))
			return false;
	return true;
}

static void copied_when_all_has_come(struct kunit *test)
{
	static const struct script_step meta = META(0, BYTES, "re#0+dest");
	static const struct script_step hold = HOLD, go = GO("end1:0");
	static const struct script_step content = CONTENT(0, 0, BYTES - 8192, "");
	struct flight flight;
	struct end *end;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_NONE, END_SEG_SHIFT);
	end = flight.script->end;
	put(flight.pool, flight.at, 1);
	ask(&flight, 1, "req#0");
	script_do(flight.script, &meta);
	/* The first region of the proxy's pool, by that one's keys */
	KUNIT_EXPECT_EQ(test, flight.script->last.remote_addr, END_IOVA);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(flight.script->last.rkeys[0]), end->key);
	KUNIT_EXPECT_EQ(test, flight.script->last.nr_rkeys,
			DIV_ROUND_UP(BYTES, 1 << END_SEG_SHIFT));
	put(end->pool, 0, 2);
	script_do(flight.script, &hold);
	script_do(flight.script, &content);
	/* Not by whom has seen it come; nor can either pool go before it is copied */
	KUNIT_EXPECT_TRUE(test, holds(flight.pool, flight.at, 1));
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&end->pool->regions, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&end->pool->regions), -EBUSY);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_close(&flight.pool->regions), -EBUSY);
	script_do(flight.script, &go);
	KUNIT_EXPECT_TRUE(test, holds(flight.pool, flight.at, 2));
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_COPIED_BYTES), BYTES);
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_FETCHED_BYTES), BYTES);
	script_pool_is_free(flight.script);
	script_close(flight.script);
}

static void wrong_is_not_copied(struct kunit *test)
{
	static const struct script_step meta = META_SUM(0, BYTES, 1, "re#0+dest");
	static const struct script_step content = CONTENT(0, 0, BYTES - 8192, "end1:-74+text");
	struct flight flight;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_NONE, END_SEG_SHIFT);
	put(flight.pool, flight.at, 1);
	ask(&flight, 1, "req#0");
	script_do(flight.script, &meta);
	script_do(flight.script, &content);
	KUNIT_EXPECT_TRUE(test, holds(flight.pool, flight.at, 1));
	KUNIT_EXPECT_EQ(test, end_stat(flight.script->end, RDMATENSOR_STAT_COPIED_BYTES), 0);
	script_pool_is_free(flight.script);
	script_close(flight.script);
}

/* What the peer can write it writes, though a proxy is allowed */
static void straight_where_it_can(struct kunit *test)
{
	static const struct script_step meta = META(0, BYTES, "re#0+dest");
	static const struct script_step content = CONTENT(0, 0, BYTES - 8192, "end1:0");
	struct flight flight;
	struct end *end;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_WRITE, END_SEG_SHIFT);
	end = flight.script->end;
	ask(&flight, 1, "req#0");
	script_do(flight.script, &meta);
	KUNIT_EXPECT_EQ(test, flight.script->last.remote_addr, END_IOVA + flight.at);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(flight.script->last.rkeys[0]), end->key + 0x8000 + 3);
	script_pool_is_free(flight.script);
	script_do(flight.script, &content);
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_COPIED_BYTES), 0);
	script_close(flight.script);
}

/* A key for each 16 bytes: a message has not so many, and segments of the proxy are longer */
static void too_many_keys(struct kunit *test)
{
	static const struct script_step meta = META(0, BYTES, "re#0+dest");
	static const struct script_step content = CONTENT(0, 0, BYTES - 8192, "end1:0");
	static const struct script_step again = CONTENT(0, 1, BYTES - 8192, "end2:0");
	struct rdmatensor_cqe cqe = {};
	struct flight flight;
	struct end *end;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_WRITE, 4);
	end = flight.script->end;
	ask(&flight, 1, "req#0");
	script_do(flight.script, &meta);
	put(end->pool, 0, 3);
	script_do(flight.script, &content);
	KUNIT_EXPECT_TRUE(test, holds(flight.pool, flight.at, 3));
	/* And at once, when it is known how many there would be */
	ask(&flight, 2, "req#1+dest");
	put(end->pool, 0, 4);
	script_do(flight.script, &again);
	KUNIT_EXPECT_TRUE(test, holds(flight.pool, flight.at, 4));
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_COPIED_BYTES), 2 * BYTES);
	/* That there were too many is nothing to tell, whatever it ends with */
	ask(&flight, 3, "req#2+dest");
	end_down(end);
	KUNIT_EXPECT_TRUE(test, end_reap(end, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.result, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, cqe.text_len, strlen("the end"));
	KUNIT_EXPECT_EQ(test, memcmp(cqe.text, "the end", strlen("the end")), 0);
	script_pool_is_free(flight.script);
	script_close(flight.script);
}

/* The region that the peer has the keys of is nobody's until the CANCEL is answered */
static void kept_until_the_answer(struct kunit *test)
{
	static const struct script_step meta = META(0, BYTES, "re#0+dest");
	static const struct script_step cancel = CANCEL(1, "cancel#0");
	static const struct script_step answer = CANCELLED(0, "end1:-125");
	struct flight flight;
	struct end *end;
	u64 offset;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_NONE, END_SEG_SHIFT);
	end = flight.script->end;
	ask(&flight, 1, "req#0");
	script_do(flight.script, &meta);
	script_do(flight.script, &cancel);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_alloc(&end->pool->regions, end->pool->bytes,
						       GFP_KERNEL, &offset), -ENOSPC);
	KUNIT_EXPECT_EQ(test, rdmatensor_regions_free(&end->pool->regions, 0), -EBUSY);
	script_do(flight.script, &answer);
	script_pool_is_free(flight.script);
	script_close(flight.script);
}

/* Neither of both fits into a message */
static void too_many_keys_of_the_proxy(struct kunit *test)
{
	static const struct script_step meta = META(0, BYTES, "cancel#0");
	static const struct script_step answer = CANCELLED(0, "end1:-90+text");
	struct flight flight;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_WRITE, 4);
	flight.script->end->pool->reg.seg_shift = 4;
	ask(&flight, 1, "req#0");
	script_do(flight.script, &meta);
	script_do(flight.script, &answer);
	script_pool_is_free(flight.script);
	script_close(flight.script);
}

/* Peers cannot write that pool: refused, and both are the caller's as before */
static void proxy_that_peers_cannot_write(struct kunit *test)
{
	struct rdmatensor_fetch_args args = {
		.user_data = 1, .name = "x", .name_len = 1, .step_id = 1, .bytes = BYTES,
	};
	struct flight flight;
	struct end *end;

	take_off(test, &flight, RDMATENSOR_POOL_PEERS_READ, END_SEG_SHIFT);
	end = flight.script->end;
	args.pool = end->pool;
	args.proxy = flight.pool;
	KUNIT_EXPECT_EQ(test, rdmatensor_request_submit(end->channel, &args), -EACCES);
	KUNIT_EXPECT_STREQ(test, script_trace(flight.script), "");
	script_close(flight.script);
}

static struct kunit_case proxy_tests[] = {
	KUNIT_CASE_PARAM(proxy, proxy_gen_params),
	KUNIT_CASE(copied_when_all_has_come),
	KUNIT_CASE(kept_until_the_answer),
	KUNIT_CASE(wrong_is_not_copied),
	KUNIT_CASE(straight_where_it_can),
	KUNIT_CASE(too_many_keys),
	KUNIT_CASE(too_many_keys_of_the_proxy),
	KUNIT_CASE(proxy_that_peers_cannot_write),
	{}
};

static struct kunit_suite proxy_suite = {
	.name = "rdmatensor_proxy",
	.test_cases = proxy_tests,
};

kunit_test_suite(proxy_suite);
