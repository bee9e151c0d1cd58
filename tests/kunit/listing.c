// SPDX-License-Identifier: GPL-2.0
/*
 * Lists: what is asked and what is answered, in the words of script.h, and how a list ends.
 */
#include <linux/slab.h>
#include "fetch/listing.h"
#include "script.h"

#define KNOWS .features = RDMATENSOR_WIRE_FEATURE_LIST
#define NOT_GROWING "down:-71(LIST_INFO whose cursors do not grow)"
#define NOT_ASKED "down:-71(LIST_INFO that was not asked for)"
#define CUT(_id) "list" #_id ":-104+text"
#define STRANGER "down:-71(LIST or LIST_INFO, from who does not know of it)"

/* An entry: of the number, step 1, failed with -5, and of a name of one letter */
#define ENTRY(_cursor, _letter) \
	_cursor, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
	5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, _letter
/* What it is in a destination: with a 0 behind the name, in words of 8 bytes */
#define ENTRY_BYTES 56
static_assert(ALIGN(sizeof(struct rdmatensor_list_entry) + 2, 8) == ENTRY_BYTES);

static const u8 one[] = { ENTRY(1, 'x') };
static const u8 two[] = { ENTRY(1, 'x'), ENTRY(2, 'x') };
static const u8 more[] = { ENTRY(3, 'x'), ENTRY(7, 'x') };
static const u8 strange[] = { ENTRY(1, 'x'), ENTRY(2, 'y') };
static const u8 falling[] = { ENTRY(2, 'x'), ENTRY(1, 'x') };
static const u8 standing[] = { ENTRY(2, 'x'), ENTRY(2, 'x') };

static const struct script askers[] = {
	{ "all at once", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), INFO(4, 0, 2, two, "list1:0=112"),
	} },
	{ "nothing", KNOWS, .steps = {
		LIST(1, "", 4096, "list#4"), NO_INFO(4, 0, "list1:0"),
	} },
	{ "piece by piece", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), INFO(4, 2, 2, two, "list#8@2"),
		NO_INFO(8, 0x102, "list#12@102"), NO_INFO(12, 0, "list1:0=112"),
	} },
	{ "from where the last one ended", KNOWS, .steps = {
		LIST_BEHIND(1, "x", 2, 4096, "list#4@2"), INFO(4, 0, 2, more, "list1:0=112"),
		LIST_BEHIND(2, "x", 1ULL << 63, 4096, "list#8@8000000000000000"),
		NO_INFO(8, 0, "list2:0"),
	} },
	{ "full, and there is more", KNOWS, .steps = {
		LIST(1, "x", ENTRY_BYTES, "list#4"), INFO(4, 0, 2, two, "list1:0=56@1"),
		LIST_BEHIND(2, "x", 1, 2 * ENTRY_BYTES - 1, "list#8@1"),
		INFO(8, 9, 2, more, "list2:0=56@3"),
		/* With the last one that is there it is not known to be full */
		LIST_BEHIND(3, "x", 1, 2 * ENTRY_BYTES, "list#12@1"),
		INFO(12, 9, 2, more, "list#16@9"), NO_INFO(16, 0, "list3:0=112"),
	} },
	{ "no room for one", KNOWS, .steps = {
		LIST(1, "x", ENTRY_BYTES - 1, "list#4"), INFO(4, 0, 1, one, "list1:-90"),
	} },
	{ "four at a time, the others in order", KNOWS, .steps = {
		LIST(1, "", 64, "list#4"), LIST(2, "", 64, "list#5"), LIST(3, "", 64, "list#6"),
		LIST(4, "", 64, "list#7"), LIST(5, "", 64, ""), LIST(6, "", 64, ""),
		NO_INFO(6, 0, "list#10 list3:0"), NO_INFO(4, 0, "list#8 list1:0"),
		NO_INFO(8, 0, "list6:0"), NO_INFO(10, 0, "list5:0"), NO_INFO(7, 0, "list4:0"),
		LIST(7, "", 64, "list#12"), NO_INFO(5, 0, "list2:0"), NO_INFO(12, 0, "list7:0"),
	} },
	{ "cancelled", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), CANCEL(1, "list1:-125"),
		LIST(2, "x", 64, "list#8"), INFO(4, 0, 1, one, ""), NO_INFO(8, 0, "list2:0"),
	} },
	{ "cancelled, its answer is late", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), CANCEL(1, "list1:-125"), INFO(4, 0, 1, one, ""),
		INFO(4, 0, 1, one, NOT_ASKED),
	} },
	{ "cancelled before it was asked", KNOWS, .steps = {
		FULL, LIST(1, "x", 64, ""), CANCEL(1, "list1:-125"), ROOM(""),
		INFO(4, 0, 1, one, NOT_ASKED),
	} },
	{ "cancelled in the middle", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), INFO(4, 2, 2, two, "list#8@2"),
		CANCEL(1, "list1:-125"), NO_INFO(8, 0, ""),
	} },
	{ "cancelled while it waits for a slot", KNOWS, .steps = {
		LIST(1, "", 64, "list#4"), LIST(2, "", 64, "list#5"), LIST(3, "", 64, "list#6"),
		LIST(4, "", 64, "list#7"), LIST(5, "", 64, ""), LIST(6, "", 64, ""),
		CANCEL(5, "list5:-125"), CANCEL(2, "list#9 list2:-125"),
		NO_INFO(5, 0, ""), NO_INFO(9, 0, "list6:0"),
	} },
	{ "out of time", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), EXPIRE(1, "list1:-110"), NO_INFO(4, 0, ""),
	} },
	{ "answered twice", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), NO_INFO(4, 0, "list1:0"), NO_INFO(4, 0, NOT_ASKED),
	} },
	{ "answered without a question", KNOWS, .steps = {
		NO_INFO(4, 0, NOT_ASKED),
	} },
	{ "answered before the question has gone", KNOWS, .steps = {
		FULL, LIST(1, "x", 64, ""), NO_INFO(4, 0, NOT_ASKED), DOWN("list1:-71+text"),
	} },
	{ "answered in another slot", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), NO_INFO(5, 0, NOT_ASKED), DOWN("list1:-71+text"),
	} },
	{ "entries that go back", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), INFO(4, 0, 2, falling, NOT_GROWING),
		DOWN("list1:-71+text"),
	} },
	{ "entries that stand", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), INFO(4, 0, 2, standing, NOT_GROWING),
		DOWN("list1:-71+text"),
	} },
	{ "entries from before the cursor", KNOWS, .steps = {
		LIST_BEHIND(1, "x", 1, 4096, "list#4@1"), INFO(4, 0, 2, two, NOT_GROWING),
		DOWN("list1:-71+text"),
	} },
	{ "entries behind the next cursor", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), INFO(4, 1, 2, two, NOT_GROWING),
		DOWN("list1:-71+text"),
	} },
	{ "a name that was not asked for", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"),
		INFO(4, 0, 2, strange, "down:-71(LIST_INFO of a name that was not asked for)"),
		DOWN("list1:-71+text"),
	} },
	{ "a name that is shorter than what was asked for", KNOWS, .steps = {
		LIST(1, "xx", 4096, "list#4"),
		INFO(4, 0, 1, one, "down:-71(LIST_INFO of a name that was not asked for)"),
		DOWN("list1:-71+text"),
	} },
	{ "a cursor that stands", KNOWS, .steps = {
		LIST(1, "x", 4096, "list#4"), NO_INFO(4, 7, "list#8@7"),
		NO_INFO(8, 7, NOT_GROWING), DOWN("list1:-71+text"),
	} },
	{ "refused", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), INFO_FAILED(4, -EACCES, "list1:-13+text"),
	} },
	{ "failed", KNOWS, .steps = {
		LIST(1, "x", 64, "list#4"), INFO_FAILED(4, -ENOMEM, "list1:-12"),
	} },
	{ "cut", KNOWS, .steps = {
		LIST(1, "", 64, "list#4"), LIST(2, "", 64, "list#5"), LIST(3, "", 64, "list#6"),
		LIST(4, "", 64, "list#7"), LIST(5, "", 64, ""),
		DOWN(CUT(5) " " CUT(1) " " CUT(2) " " CUT(3) " " CUT(4)),
	} },
	{ "asked when it is down", KNOWS, .steps = {
		DOWN(""), LIST_FAILS(1, -ENOTCONN),
	} },
	{ "of who knows nothing of it", .steps = {
		LIST_FAILS(1, -EOPNOTSUPP),
	} },
	{ "answered by who knows nothing of it", .steps = {
		NO_INFO(4, 0, STRANGER),
	} },
	{ "into what the CPU cannot reach", KNOWS, .unreachable = true, .steps = {
		LIST_FAILS(1, -EOPNOTSUPP),
	} },
};

KUNIT_ARRAY_PARAM(asker, askers, script_name);

static void asker(struct kunit *test)
{
	script_run(test, test->param_value);
}

#define OFFER(_id, _name) PUBLISH(_id, _name, 64, 1, "")

static const struct script tellers[] = {
	{ "nothing", KNOWS, .steps = {
		LIST_OF(0, "", 0, "info#0:0"),
	} },
	{ "what is offered", KNOWS, .left = 2, .steps = {
		OFFER(7, "x"), OFFER(8, "y"),
		LIST_OF(0, "", 0, "info#0:2"), LIST_OF(4, "x", 0, "info#4:1"),
		LIST_OF(8, "xy", 0, "info#8:0"), LIST_OF(12, "", 1, "info#12:1"),
		LIST_OF(16, "", 2, "info#16:0"), LIST_OF(20, "", ~0ULL, "info#20:0"),
	} },
	{ "not what is waited for", KNOWS, .steps = {
		REQ(0, "x", ""), LIST_OF(0, "", 0, "info#0:0"),
	} },
	{ "not what is used up, nor what is withdrawn", KNOWS, .steps = {
		OFFER(7, "x"), REQ_DEST(0, "x", 64, "w0#0:64!"), LIST_OF(0, "", 0, "info#0:0"),
		DONE("pub7:0"), LIST_OF(4, "", 0, "info#4:0"),
		OFFER(8, "y"), LIST_OF(8, "", 0, "info#8:1"),
		WITHDRAW(9, "y", "pub8:-125 wd9:0"), LIST_OF(12, "", 0, "info#12:0"),
	} },
	{ "not told", KNOWS, .unlisted = true, .left = 1, .steps = {
		OFFER(7, "x"), LIST_OF(0, "", 0, "info#0:-13"), LIST_OF(1, "x", 0, "info#1:-13"),
	} },
	{ "four at a time", KNOWS, .left = 1, .steps = {
		OFFER(7, "x"), FULL,
		LIST_OF(3, "x", 0, ""), LIST_OF(2, "", 0, ""), LIST_OF(1, "y", 0, ""),
		LIST_OF(0, "x", 5, ""), ROOM("info#3:1 info#2:1 info#1:0 info#0:0"),
	} },
	{ "asked again before it was told", KNOWS, .left = 1, .steps = {
		OFFER(7, "x"), FULL,
		LIST_OF(0, "y", 0, ""), LIST_OF(4, "x", 0, ""), ROOM("info#4:1"),
	} },
	{ "as it is when it is told", KNOWS, .left = 1, .steps = {
		FULL, LIST_OF(0, "", 0, ""), OFFER(7, "x"), ROOM("info#0:1"),
	} },
	{ "cut", KNOWS, .left = 1, .steps = {
		OFFER(7, "x"), FULL, LIST_OF(0, "x", 0, ""), LIST_OF(1, "", 0, ""), DOWN(""),
	} },
	{ "who knows nothing of it", .left = 1, .steps = {
		OFFER(7, "x"), LIST_OF(0, "", 0, STRANGER),
	} },
};

KUNIT_ARRAY_PARAM(teller, tellers, script_name);

static void teller(struct kunit *test)
{
	script_run(test, test->param_value);
}

#define MANY 600

/* Offers names of all lengths; some with dims, some that have failed */
static void offer_many(struct kunit *test, struct end *end)
{
	struct rdmatensor_publish_args args = { .step_id = 1, .uses = 1 };
	static char name[RDMATENSOR_NAME_MAX];
	u32 i;

	for (i = 0; i < MANY; i++) {
		memset(name, 'n', sizeof(name));
		memcpy(name, &i, sizeof(i));
		args.name = name;
		args.name_len = sizeof(i) + i * 7 % (sizeof(name) - sizeof(i) + 1);
		args.meta = (struct rdmatensor_meta) {
			.data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 9 }, .is_dead = 1,
		};
		if (i % 5 == 0)
			rdmatensor_status_say(&args.failed, -EIO, "no", 2, GFP_KERNEL);
		KUNIT_ASSERT_EQ(test, rdmatensor_publish(&end->core, &args), 0);
		rdmatensor_status_clear(&args.failed);
	}
}

/* What was listed of offer_many(): each once, in order. Return: the number behind it */
static u32 expect_next(struct kunit *test, u32 i, const char *name, u16 name_len, int error,
		       u8 ndims, s64 step_id)
{
	u32 number = U32_MAX;

	KUNIT_ASSERT_GE(test, name_len, sizeof(number));
	memcpy(&number, name, sizeof(number));
	KUNIT_ASSERT_EQ(test, number, i);
	KUNIT_EXPECT_EQ(test, name_len,
			sizeof(i) + i * 7 % (RDMATENSOR_NAME_MAX - sizeof(i) + 1));
	KUNIT_EXPECT_EQ(test, error, i % 5 ? 0 : -EIO);
	KUNIT_EXPECT_EQ(test, ndims, i % 5 ? 1 : 0);
	KUNIT_EXPECT_EQ(test, step_id, 1);
	return i + 1;
}

/* In as many messages as it takes, each as full as it can be */
static void many_are_told(struct kunit *test)
{
	struct script_end *script = script_open(test, 1, &end_params);
	struct script_step ask = LIST_OF(0, "", 0, "");
	const struct rdmatensor_msg *told = &script->last;
	struct rdmatensor_listed listed;
	const char *pos;
	u32 next = 0, i;

	script->features = RDMATENSOR_WIRE_FEATURE_LIST;
	script_up(script);
	offer_many(test, script->end);
	do {
		script_rx(script, &ask.msg);
		script_trace(script);
		KUNIT_ASSERT_EQ(test, told->type, RDMATENSOR_WIRE_LIST_INFO);
		KUNIT_ASSERT_EQ(test, told->request_index, ask.msg.request_index);
		KUNIT_ASSERT_TRUE(test, told->nr_entries || !told->cursor);
		for (i = 0, pos = told->entries; i < told->nr_entries; i++) {
			pos += rdmatensor_wire_entry_get(pos, RDMATENSOR_NAME_MAX + 256, &listed);
			next = expect_next(test, next, listed.name, listed.name_len, listed.error,
					   listed.meta.ndims, listed.step_id);
		}
		/* A longest one would not have had room as well */
		if (told->cursor)
			KUNIT_EXPECT_GT(test, told->entries_bytes + RDMATENSOR_NAME_MAX + 2 *
					sizeof(struct rdmatensor_wire_entry),
					end_params.msg_slot_bytes - 80);
		ask.msg.cursor = told->cursor;
		ask.msg.request_index += 4;
	} while (told->cursor);
	KUNIT_EXPECT_EQ(test, next, MANY);
	script_close(script);
	KUNIT_EXPECT_EQ(test, script->end->left, MANY);
}

/* Into one page of a pool after the other, which ends anywhere */
static void many_are_written(struct kunit *test)
{
	struct end *end = end_open(test, 1, 32 << END_SEG_SHIFT, &end_params);
	struct rdmatensor_listing_args args = { .user_data = 1, .pool = end->pool };
	char *copy = kunit_kzalloc(test, RDMATENSOR_LIST_ENTRY_MAX, GFP_KERNEL);
	const struct rdmatensor_list_entry *entry = (void *)copy;
	struct rdmatensor_cqe cqe = {};
	u32 next = 0, run, i;
	u64 pos;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	offer_many(test, end);
	args.bytes = 3 * PAGE_SIZE - 8;
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc(&end->pool->regions, args.bytes, GFP_KERNEL,
						       &args.offset), 0);
	do {
		rdmatensor_pool_get(end->pool);
		KUNIT_ASSERT_EQ(test, rdmatensor_listing_local(&end->core, &args), 0);
		KUNIT_ASSERT_TRUE(test, end_reap(end, &cqe));
		KUNIT_ASSERT_EQ(test, cqe.type, RDMATENSOR_CQE_LIST);
		KUNIT_ASSERT_EQ(test, cqe.result, 0);
		KUNIT_ASSERT_LE(test, cqe.tensor_bytes, args.bytes);
		for (pos = 0; pos < cqe.tensor_bytes; pos += entry->bytes) {
			for (i = 0; i < RDMATENSOR_LIST_ENTRY_MAX; i++)
				copy[i] = *(char *)end_at(end, args.offset + pos + i, &run);
			next = expect_next(test, next, copy + sizeof(*entry) + 8 * entry->ndims,
					   entry->name_len, entry->status, entry->ndims,
					   entry->step_id);
			KUNIT_EXPECT_EQ(test, copy[sizeof(*entry) + 8 * entry->ndims +
						   entry->name_len], 0);
			KUNIT_EXPECT_EQ(test, entry->flags,
					entry->status ? 0 : RDMATENSOR_LIST_DEAD);
		}
		KUNIT_EXPECT_EQ(test, pos, cqe.tensor_bytes);
		args.cursor = cqe.cursor;
	} while (args.cursor);
	KUNIT_EXPECT_EQ(test, next, MANY);
	KUNIT_EXPECT_EQ(test, end_stat(end, RDMATENSOR_STAT_LISTS),
			end_stat(end, RDMATENSOR_STAT_LISTED));
	end_close(end);
}

/* A list of the context's own that is over before it begins; one that goes on has its entries */
static void own_by_its_deadline(struct kunit *test)
{
	struct end *end = end_open(test, 1, 32 << END_SEG_SHIFT, &end_params);
	struct rdmatensor_listing_args args = {
		.user_data = 1, .pool = end->pool, .bytes = 4096, .deadline_ns = 1,
	};
	struct rdmatensor_cqe cqe = {};

	offer_many(test, end);
	KUNIT_ASSERT_EQ(test, rdmatensor_regions_alloc(&end->pool->regions, args.bytes, GFP_KERNEL,
						       &args.offset), 0);
	rdmatensor_pool_get(end->pool);
	KUNIT_ASSERT_EQ(test, rdmatensor_listing_local(&end->core, &args), 0);
	KUNIT_ASSERT_TRUE(test, end_reap(end, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.result, -ETIMEDOUT);
	args.deadline_ns = U64_MAX;
	rdmatensor_pool_get(end->pool);
	KUNIT_ASSERT_EQ(test, rdmatensor_listing_local(&end->core, &args), 0);
	KUNIT_ASSERT_TRUE(test, end_reap(end, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.result, 0);
	KUNIT_EXPECT_GT(test, cqe.tensor_bytes, 0ULL);
	end_close(end);
}

static struct kunit_case listing_tests[] = {
	KUNIT_CASE_PARAM(asker, asker_gen_params),
	KUNIT_CASE_PARAM(teller, teller_gen_params),
	KUNIT_CASE(many_are_told),
	KUNIT_CASE(many_are_written),
	KUNIT_CASE(own_by_its_deadline),
	{}
};

static struct kunit_suite listing_suite = {
	.name = "rdmatensor_listing",
	.test_cases = listing_tests,
};

kunit_test_suite(listing_suite);
