// SPDX-License-Identifier: GPL-2.0
/*
 * Owners and readers of tables that lie: rows that are not there, keys that are nobody's,
 * answers to what was not asked. The reader gets an error, and nothing but its own
 * destination is written to.
 */
#include <asm/byteorder.h>
#include <endian.h>
#include <pthread.h>
#include <unistd.h>
#include "hostile.h"

#define ROW 512
#define ROWS 8
#define TIMEOUT_MS 1500
/* Of a call that the channel's end interrupts at one step or another */
#define SOME_ERROR 1

static struct liar liar;
static unsigned int liar_port;
static unsigned int table_timeout_ms = TIMEOUT_MS;

static struct {
	pthread_t thread;
	uint32_t channel;
	struct rdmatensor_table_open open;
	int connected;
	int opened;
} reader;

static void *open_table(void *unused)
{
	char addr[64], cause[256];

	(void)unused;
	test_addr(addr, sizeof(addr), liar_port);
	reader.connected = rdmatensor_connect(scene.p.a.rt, addr, NULL, 3000, &reader.channel,
					      cause, sizeof(cause));
	memset(&reader.open, 0, sizeof(reader.open));
	reader.open.timeout_ms = table_timeout_ms;
	table_timeout_ms = TIMEOUT_MS;
	reader.opened = reader.connected ?:
			rdmatensor_table_open(scene.p.a.rt, "t", &reader.channel, 1, &reader.open);
	return NULL;
}

/* The victim is connected to the liar and asks for the table; what it asks with */
static void asked(struct rdmatensor_msg *question)
{
	struct rdmatensor_msg msg;

	liar_init(&liar, 1);
	EQ(liar_listen(&liar, test_ip(), &liar_port), 0);
	EQ(pthread_create(&reader.thread, NULL, open_table, NULL), 0);
	EQ(liar_accept(&liar, true, sizeof(liar.own)), 0);
	liar_hello(&liar);
	EQ(liar_hear(&liar, &msg, 5000), RDMATENSOR_WIRE_HELLO);
	EQ(liar_hear(&liar, question, 5000), RDMATENSOR_WIRE_TABLE_OPEN);
}

/* Rows in the liar's own memory, as an honest owner would tell of them */
static struct rdmatensor_msg rows(const struct rdmatensor_msg *question)
{
	static __le32 rkey;
	struct rdmatensor_msg msg = {
		.type = RDMATENSOR_WIRE_TABLE_INFO,
		.request_index = question->request_index,
		.remote_addr = (uintptr_t)liar.memory + LIAR_FROM,
		.seg_shift = RDMATENSOR_WIRE_SEG_SHIFT_MAX,
		.nr_rkeys = 1,
		.table = { .row_end = ROWS, .row_bytes = ROW, .stride = ROW,
			   .data_type = RDMATENSOR_DT_FLOAT, .nr_keys = 1 },
	};

	rkey = cpu_to_le32(liar.mr->rkey);
	msg.rkeys = &rkey;
	return msg;
}

static void ends(int opened, int channel_error)
{
	struct rdmatensor_cqe cqe;

	pthread_join(reader.thread, NULL);
	EQ(reader.connected, 0);
	if (opened == SOME_ERROR ? reader.opened >= 0 : reader.opened != opened)
		test_fail(__FILE__, __LINE__, "TABLE_OPEN: %d, expected %d: %s", reader.opened,
			  opened, reader.open.cause);
	if (reader.open.out_table)
		EQ(rdmatensor_table_close(scene.p.a.rt, reader.open.out_table), 0);
	if (!channel_error)
		EQ(rdmatensor_disconnect(scene.p.a.rt, reader.channel), 0);
	EQ(side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &cqe),
	   channel_error ? channel_error : -ESHUTDOWN);
	scene.breaches += channel_error == -EPROTO;
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_PROTOCOL_ERRORS), scene.breaches);
	liar_close(&liar);
	scene_duty();
}

/* The victim gathers @nr rows from @first on. Return: the result */
static int gather(uint64_t first, uint64_t nr, uint64_t at)
{
	struct rdmatensor_cqe cqe;
	uint64_t ids[ROWS], i;

	for (i = 0; i < nr; i++)
		ids[i] = first + i;
	return rdmatensor_gather(scene.p.a.rt, reader.open.out_table, ids, nr, &scene.p.a.pool, at,
				 nr * ROW, rdmatensor_deadline_ms(20000), &cqe);
}

/* The lanes that the victim wants for its reads */
static void let_read(void)
{
	unsigned int lane;

	/* START's default */
	for (lane = 0; lane < 2; lane++)
		EQ(liar_accept_read(&liar, 1 + lane), 0);
}

/* The victim has opened the table, and nobody has lied */
static void lets_itself_be_read(void)
{
	struct rdmatensor_msg question, msg;

	asked(&question);
	msg = rows(&question);
	liar_say(&liar, &msg);
	let_read();
	pthread_join(reader.thread, NULL);
	EQ(reader.opened, 0);
}

TEST(owners_that_lie_of_their_rows)
{
	enum { HONEST, KEY, BEYOND, NR };
	struct rdmatensor_msg question, msg;
	uint64_t at;
	int what;
	__le32 nobodys;

	scene_open(NULL);
	at = side_alloc(&scene.p.a, ROWS * ROW);
	for (what = 0; what < NR; what++) {
		asked(&question);
		memset(liar.memory + LIAR_FROM, 0xa5, ROWS * ROW);
		msg = rows(&question);
		if (what == KEY) {
			nobodys = cpu_to_le32(liar.mr->rkey + 0x100);
			msg.rkeys = &nobodys;
		}
		if (what == BEYOND)
			msg.table.row_end = 1000000;
		liar_say(&liar, &msg);
		let_read();
		pthread_join(reader.thread, NULL);
		EQ(reader.opened, 0);
		memset(side_at(&scene.p.a, at), 0, ROWS * ROW);
		if (what == HONEST) {
			EQ(gather(0, ROWS, at), 0);
			EQ(side_at(&scene.p.a, at)[ROWS * ROW - 1], 0xa5);
		} else {
			EQ(gather(what == BEYOND ? 999990 : 0, ROWS, at), -ESTALE);
			/* It has learnt that */
			EQ(gather(what == BEYOND ? 999990 : 0, 1, at), -ESTALE);
		}
		EQ(rdmatensor_table_close(scene.p.a.rt, reader.open.out_table), 0);
		reader.open.out_table = 0;
		EQ(rdmatensor_disconnect(scene.p.a.rt, reader.channel), 0);
		side_forget(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN);
		liar_close(&liar);
		side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &(struct rdmatensor_cqe){});
		scene_duty();
	}
}

/* Longer than retries over a lane that is gone take */
static void tune_patience(struct rdmatensor_start *start)
{
	scene_tune(start);
	start->handshake_ms = 20000;
}

static void tune_a_second(struct rdmatensor_start *start)
{
	scene_tune(start);
	start->handshake_ms = 1000;
}

/* The victim gathers until it has asked for a lane, for @ms at most. Return: whether it has */
static bool asks_beside_gathers(uint64_t at, unsigned int ms)
{
	uint64_t end = rdmatensor_now_ns() + ms * 1000000ull;

	while (rdmatensor_now_ns() < end) {
		EQ(gather(0, ROWS, at), 0);
		if (liar_is_asked(&liar, 0))
			return true;
	}
	return false;
}

static void table_ends(void)
{
	EQ(rdmatensor_table_close(scene.p.a.rt, reader.open.out_table), 0);
	reader.open.out_table = 0;
	EQ(rdmatensor_disconnect(scene.p.a.rt, reader.channel), 0);
	side_forget(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN);
	liar_close(&liar);
	side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &(struct rdmatensor_cqe){});
	scene_duty();
}

/* It lets itself be read over one lane, and leaves the request for the other one unanswered */
TEST(lanes_that_are_never_answered)
{
	struct rdmatensor_msg question, msg;
	uint64_t at, from;
	bool asked_again;
	int i;

	scene_open(tune_a_second);
	at = side_alloc(&scene.p.a, ROWS * ROW);
	/* Nearly all of it is the attempt, and the pause is nine times as long */
	table_timeout_ms = 3000;
	asked(&question);
	msg = rows(&question);
	liar_say(&liar, &msg);
	EQ(liar_accept_read(&liar, 1), 0);
	pthread_join(reader.thread, NULL);
	EQ(reader.opened, 0);
	liar_ignore(&liar, 2);
	/* By the one that is there, and not each behind another attempt */
	from = rdmatensor_now_ns();
	for (i = 0; i < 10; i++)
		EQ(gather(0, ROWS, at), 0);
	CHECK(rdmatensor_now_ns() - from < 3000000000ull);
	/* Nor is one made beside them, so soon after one that has taken a second */
	asked_again = asks_beside_gathers(at, 1000);
	CHECK(!asked_again || rdmatensor_now_ns() - from > 8000000000ull);
	table_ends();
}

/* The other lane serves, until it is back, which no gather waits for */
TEST(lanes_that_come_back)
{
	uint64_t at;

	scene_open(tune_patience);
	at = side_alloc(&scene.p.a, ROWS * ROW);
	lets_itself_be_read();
	liar_break_read(&liar, 2);
	/* Until a list has met it: that one is read again over the other lane */
	CHECK(asks_beside_gathers(at, 20000));
	EQ(gather(0, ROWS, at), 0);
	EQ(liar_accept_read(&liar, 2), 0);
	EQ(side_stat(&scene.p.a, RDMATENSOR_STAT_GATHER_LANES_DOWN), 1);
	table_ends();
}

static void *gather_all(void *at)
{
	return (void *)(intptr_t)gather(0, ROWS, *(uint64_t *)at);
}

/* An attempt that may take 20 s gives way when the last lane fails beside it */
TEST(lanes_that_all_fail)
{
	pthread_t thread;
	uint64_t at, from;
	void *ret;

	scene_open(tune_patience);
	at = side_alloc(&scene.p.a, ROWS * ROW);
	lets_itself_be_read();
	liar_break_read(&liar, 2);
	CHECK(asks_beside_gathers(at, 20000));
	from = rdmatensor_now_ns();
	liar_break_read(&liar, 1);
	EQ(pthread_create(&thread, NULL, gather_all, &at), 0);
	liar_ignore(&liar, 3);
	CHECK(liar_is_asked(&liar, 10000));
	EQ(liar_accept_read(&liar, 1), 0);
	CHECK(liar_is_asked(&liar, 10000));
	EQ(liar_accept_read(&liar, 2), 0);
	pthread_join(thread, &ret);
	EQ((intptr_t)ret, 0);
	CHECK(rdmatensor_now_ns() - from < 10000000000ull);
	table_ends();
}

TEST(answers_about_tables_that_lie)
{
	struct rdmatensor_msg question, msg;
	int what, i;

	scene_open(NULL);
	for (what = 0; what < 9; what++) {
		int opened = -ENOTCONN, end = -EPROTO;

		asked(&question);
		msg = rows(&question);
		switch (what) {
		case 0: /* to another question */
			msg.request_index++;
			break;
		case 1: /* rows that end before they begin */
			msg.table.row_start = ROWS + 1;
			break;
		case 2: /* rows without an end */
			msg.table.stride = 1ull << 62;
			break;
		case 3: /* rows that no key is for */
			msg.table.nr_keys = 7;
			break;
		case 4: /* keys from the middle, where the first ones were asked for */
			msg.table.row_end = 1ull << 33;
			msg.table.nr_keys = rdmatensor_wire_segments(msg.remote_addr,
								     (1ull << 33) * ROW,
								     msg.seg_shift);
			msg.table.first_key = 1;
			end = 0;
			opened = -EPROTO;
			break;
		case 5: /* none, and why */
			msg.flags = RDMATENSOR_WIRE_F_FAILED;
			msg.error = -EIO;
			msg.nr_rkeys = 0;
			end = 0;
			opened = -EIO;
			break;
		case 6: /* nothing at all */
			end = 0;
			opened = -ETIMEDOUT;
			break;
		case 7: /* twice; the first one is right, but nobody lets itself be read */
			break;
		case 8: /* others each time: keys of rows that change while they are asked for */
			msg.table.row_end = 1ull << 33;
			msg.table.nr_keys = rdmatensor_wire_segments(msg.remote_addr,
								     (1ull << 33) * ROW,
								     msg.seg_shift);
			end = 0;
			opened = -EAGAIN;
			break;
		}
		if (what != 6)
			liar_say(&liar, &msg);
		if (what == 7) {
			liar_say(&liar, &msg);
			opened = SOME_ERROR;
		}
		for (i = 0; what == 8 && i < 5; i++) {
			if (liar_hear(&liar, &question, 2000) != RDMATENSOR_WIRE_TABLE_OPEN)
				break;
			msg.request_index = question.request_index;
			msg.table.first_key = question.table.first_key;
			/* Other rows, unless it begins again */
			msg.table.data_type = question.table.first_key ? RDMATENSOR_DT_INT32 :
					      RDMATENSOR_DT_FLOAT;
			liar_say(&liar, &msg);
		}
		ends(opened, end);
	}
}

/* Each answer is in time, and there are too many of them: the call has one deadline */
TEST(owners_that_give_key_by_key)
{
	struct rdmatensor_msg question, msg;
	uint64_t began;

	scene_open(NULL);
	table_timeout_ms = 300;
	asked(&question);
	began = rdmatensor_now_ns();
	msg = rows(&question);
	msg.seg_shift = 21;
	msg.table.row_end = 1ull << 30;
	msg.table.nr_keys = rdmatensor_wire_segments(msg.remote_addr, (1ull << 30) * ROW,
						     msg.seg_shift);
	do {
		msg.request_index = question.request_index;
		msg.table.first_key = question.table.first_key;
		liar_say(&liar, &msg);
	} while (liar_hear(&liar, &question, 1000) == RDMATENSOR_WIRE_TABLE_OPEN);
	CHECK(rdmatensor_now_ns() - began < 3000000000ull);
	ends(-ETIMEDOUT, 0);
}

TEST(readers_that_lie)
{
	struct rdmatensor_msg msg = {
		.type = RDMATENSOR_WIRE_TABLE_OPEN, .name = "nobody's", .name_len = 8,
		.request_index = 5,
	}, answer;

	scene_open(NULL);
	scene_meet(&liar, 1);
	/* What is not exported */
	liar_say(&liar, &msg);
	EQ(liar_hear(&liar, &answer, 5000), RDMATENSOR_WIRE_TABLE_INFO);
	EQ(answer.flags, RDMATENSOR_WIRE_F_FAILED);
	EQ(answer.error, -ENOENT);
	EQ(answer.request_index, 5);
	/* A lane for reads of a channel that is not its own */
	liar.own.flags = cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_READ);
	liar.own.lanes = 2;
	liar.own.nonce ^= cpu_to_le64(1);
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 1, sizeof(liar.own)), -ECONNRESET);
	liar.own.nonce ^= cpu_to_le64(1);
	/* Flags that are none */
	liar.own.flags = cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_READ | 4);
	EQ(liar_connect_lane(&liar, test_ip(), scene.p.a.port, 1, sizeof(liar.own)), -EPROTO);
	scene_lives(&liar);
	/* An answer to what was not asked */
	scene_meet(&liar, 1);
	msg = (struct rdmatensor_msg) {
		.type = RDMATENSOR_WIRE_TABLE_INFO, .flags = RDMATENSOR_WIRE_F_FAILED,
		.error = -ENOENT,
	};
	liar_say(&liar, &msg);
	scene_ends(&liar, -EPROTO);
}

/*
 * A lane is connected again whose former queue pair has gone without a word, as where the only DREQ was
 * lost. The owner hears of it by its successor: that many dead ones do not keep a reader away
 */
TEST(lanes_that_end_without_a_word)
{
	struct rdma_cm_id *silent[6 * RDMATENSOR_LANES_MAX];
	unsigned int i, tries = 0;
	uint64_t began;
	int ret;

	scene_open(NULL);
	scene_meet(&liar, 1);
	liar.own.flags = cpu_to_le32(RDMATENSOR_WIRE_PRIVATE_READ);
	liar.own.lanes = 2;
	for (i = 0; i < sizeof(silent) / sizeof(*silent); i++) {
		/* Former ones may not have been taken apart yet */
		for (began = rdmatensor_now_ns();; tries++) {
			ret = liar_connect_lane(&liar, test_ip(), scene.p.a.port, 1,
						sizeof(liar.own));
			if (ret != -EUSERS || ms_since(began) > 5000)
				break;
			usleep(10000);
		}
		EQ(ret, 0);
		silent[i] = liar.ids[1];
		liar.ids[1] = NULL;
	}
	printf("# %u times it had no place yet\n", tries);
	scene_lives(&liar);
	for (i = 0; i < sizeof(silent) / sizeof(*silent); i++) {
		rdma_destroy_qp(silent[i]);
		rdma_destroy_id(silent[i]);
	}
}

/* A refusal, as an honest peer would say it */
static struct rdmatensor_wire_reject refusal(int error)
{
	return (struct rdmatensor_wire_reject){
		.magic = htole32(RDMATENSOR_WIRE_MAGIC), .major = RDMATENSOR_WIRE_MAJOR,
		.error = htole16(error),
	};
}

static struct {
	pthread_t thread;
	struct rdmatensor_wire_reject reject;
	size_t len;
	bool over;
	unsigned int nr;
} refuser;

static void *refuse(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&refuser.over, __ATOMIC_ACQUIRE)) {
		if (!liar_is_asked(&liar, 20))
			continue;
		liar_reject(&liar, &refuser.reject, refuser.len);
		refuser.nr++;
	}
	return NULL;
}

static void refuse_begin(struct rdmatensor_wire_reject reject, size_t len)
{
	refuser.reject = reject;
	refuser.len = len;
	refuser.over = false;
	refuser.nr = 0;
	EQ(pthread_create(&refuser.thread, NULL, refuse, NULL), 0);
}

static void refuse_end(void)
{
	__atomic_store_n(&refuser.over, true, __ATOMIC_RELEASE);
	pthread_join(refuser.thread, NULL);
	CHECK(refuser.nr);
}

/* All rows, without a deadline: nothing but the refusals ends it */
static void gather_is_refused(uint64_t at, int error)
{
	struct rdmatensor_cqe cqe;
	uint64_t ids[ROWS], i;
	struct rdmatensor_op op;
	char line[RDMATENSOR_STATUS_ROOM], number[16];
	int ret;

	for (i = 0; i < ROWS; i++)
		ids[i] = i;
	rdmatensor_prep_gather(&op, reader.open.out_table, ids, ROWS, scene.p.a.pool.id, at,
			       ROWS * ROW, 0, 31);
	EQ(side_do(&scene.p.a, &op), 0);
	ret = side_next(&scene.p.a, RDMATENSOR_CQE_GATHER, 31, &cqe);
	rdmatensor_status_text(scene.p.a.rt, &cqe, line, sizeof(line));
	snprintf(number, sizeof(number), "(%d)", error);
	if (ret != error || !strstr(line, "no lane to 'liar' is left") || !strstr(line, number))
		test_fail(__FILE__, __LINE__, "GATHER: %d, expected %d: %s", ret, error, line);
}

/*
 * The owner has let the victim read, breaks its lanes, and refuses others. Whatever it says,
 * the gather ends; and what would say something of the victim's own side counts as a refusal
 */
TEST(refusals_of_read_lanes)
{
	static const struct {
		int said, heard;
	} rows_of[] = {
		{ ECONNRESET, -ECONNRESET }, { ENOMEM, -ENOMEM }, { EPROTO, -EPROTO },
		{ EXDEV, -EXDEV }, { ECONNREFUSED, -ECONNREFUSED },
		{ EPROTONOSUPPORT, -EPROTONOSUPPORT },
		{ EUSERS, -ECONNREFUSED }, { ENODEV, -ECONNREFUSED }, { ERANGE, -ECONNREFUSED },
		{ ESTALE, -ECONNREFUSED }, { ENOENT, -ECONNREFUSED }, { ETIMEDOUT, -ECONNREFUSED },
		{ ECANCELED, -ECONNREFUSED }, { EFAULT, -ECONNREFUSED },
		{ EBUSY, -ECONNREFUSED }, { EAGAIN, -ECONNREFUSED }, { EINTR, -ECONNREFUSED },
		{ ENOTCONN, -ECONNREFUSED },
		/* ERESTARTSYS and the like say something to the kernel alone */
		{ 512, -EPROTO }, { 514, -EPROTO }, { 0, -EPROTO }, { 0xffff, -EPROTO },
	};
	struct rdmatensor_wire_reject reject;
	unsigned int lane;
	uint64_t at;
	size_t i;

	scene_open(NULL);
	at = side_alloc(&scene.p.a, ROWS * ROW);
	lets_itself_be_read();
	EQ(gather(0, ROWS, at), 0);
	for (lane = 0; lane < 2; lane++)
		liar_break_read(&liar, 1 + lane);

	for (i = 0; i < sizeof(rows_of) / sizeof(*rows_of); i++) {
		refuse_begin(refusal(rows_of[i].said), sizeof(reject));
		gather_is_refused(at, rows_of[i].heard);
		refuse_end();
		test_alive();
	}
	/* Another version; no words of this protocol; too few */
	reject = refusal(EBUSY);
	reject.major++;
	refuse_begin(reject, sizeof(reject));
	gather_is_refused(at, -EPROTONOSUPPORT);
	refuse_end();
	reject = refusal(EBUSY);
	reject.magic = 0;
	refuse_begin(reject, sizeof(reject));
	gather_is_refused(at, -EPROTO);
	refuse_end();
	refuse_begin(refusal(EBUSY), 3);
	gather_is_refused(at, -EPROTO);
	refuse_end();
	/* As when its listener is just being closed */
	refuse_begin((struct rdmatensor_wire_reject){}, sizeof(reject));
	gather_is_refused(at, -ECONNREFUSED);
	refuse_end();

	EQ(rdmatensor_table_close(scene.p.a.rt, reader.open.out_table), 0);
	EQ(rdmatensor_disconnect(scene.p.a.rt, reader.channel), 0);
	side_forget(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN);
	liar_close(&liar);
	side_next(&scene.p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, &(struct rdmatensor_cqe){});
	scene_duty();
}
