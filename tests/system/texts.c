// SPDX-License-Identifier: GPL-2.0
/*
 * Texts of failures: of every length, from a peer and over loopback, whole, cut, and kept
 * until others have come.
 */
#include <pthread.h>
#include <sys/ioctl.h>
#include "harness.h"

#define MOST RDMATENSOR_STATUS_TEXT_MAX

static struct pair p;
static uint32_t slot_bytes;

static void tune_slots(struct rdmatensor_start *start)
{
	start->msg_slot_bytes = slot_bytes;
}

/* A text that no other @tag has, from its first bytes on */
static const char *words(char *text, unsigned int len, unsigned int tag)
{
	unsigned int i;

	for (i = 0; i < len; i++)
		text[i] = "0123456789abcdef"[tag >> 4 * (i % 8) & 15];
	text[len] = '\0';
	return text;
}

static int ask(struct side *side, uint32_t id, char *text, uint32_t room)
{
	struct rdmatensor_status_text arg = {
		.size = sizeof(arg), .text_id = id, .text_uptr = rdmatensor_op_ptr(text),
		.text_len = room,
	};

	return ioctl(rdmatensor_fd(side->rt), RDMATENSOR_STATUS_TEXT, &arg) ? -errno :
	       (int)arg.text_len;
}

static void publish_failed(struct side *side, const char *name, int64_t step, const char *text)
{
	struct rdmatensor_op op;

	rdmatensor_prep_publish_failed(&op, name, step, -ERANGE, text, 1, 1);
	EQ(side_do(side, &op), 0);
}

static void ask_for(struct side *side, uint32_t channel, const char *name, int64_t step)
{
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_alloc(&op, channel, name, step, side->pool.id, 0, 0, 2);
	EQ(side_do(side, &op), 0);
}

/* The entry's own bytes, all bytes, and what the library makes of it */
static void says(struct side *side, const struct rdmatensor_cqe *cqe, const char *text)
{
	char all[RDMATENSOR_STATUS_ROOM], line[RDMATENSOR_STATUS_ROOM];
	unsigned int len = strlen(text);
	unsigned int first = len < RDMATENSOR_TEXT_MAX ? len : RDMATENSOR_TEXT_MAX;

	EQ(!!(cqe->flags & RDMATENSOR_CQE_TEXT), !!len);
	EQ(cqe->text_len, first);
	CHECK(!memcmp(cqe->text, text, first));
	EQ(!!(cqe->flags & RDMATENSOR_CQE_MORE), len > RDMATENSOR_TEXT_MAX);
	EQ(!!cqe->text_id, len > RDMATENSOR_TEXT_MAX);
	if (cqe->text_id) {
		EQ(ask(side, cqe->text_id, all, sizeof(all)), len);
		CHECK(!memcmp(all, text, len));
	}
	snprintf(line, sizeof(line), "%s%s%s", strerror(-cqe->result), len ? ": " : "", text);
	CHECK(!strcmp(rdmatensor_status_text(side->rt, cqe, all, sizeof(all)), line));
}

static const unsigned int lengths[] = { 0, 1, 127, 128, 129, 511, 512, 513, MOST - 1, MOST };
#define NR_LENGTHS (sizeof(lengths) / sizeof(*lengths))

TEST(texts_of_every_length)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	char text[MOST + 2];
	unsigned int i;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < NR_LENGTHS; i++) {
		/* Published first, then asked for first, then over loopback, by both ways too */
		publish_failed(&p.a, "n", i, words(text, lengths[i], i));
		ask_for(&p.b, p.b.channel, "n", i);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
		says(&p.b, &cqe, text);
		ask_for(&p.b, p.b.channel, "m", i);
		publish_failed(&p.a, "m", i, words(text, lengths[i], ~i));
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
		says(&p.b, &cqe, text);
		publish_failed(&p.a, "o", i, text);
		ask_for(&p.a, RDMATENSOR_CHANNEL_SELF, "o", i);
		EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
		says(&p.a, &cqe, text);
		ask_for(&p.a, RDMATENSOR_CHANNEL_SELF, "q", i);
		publish_failed(&p.a, "q", i, text);
		EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
		says(&p.a, &cqe, text);
		/* What was read is read again */
		says(&p.a, &cqe, text);
	}
	rdmatensor_prep_publish_failed(&op, "n", 99, -ERANGE, words(text, MOST + 1, 0), 1, 1);
	EQ(side_do(&p.a, &op), -EINVAL);
}

TEST(texts_of_aborted_steps)
{
	struct rdmatensor_cqe cqe;
	char text[MOST + 1];
	unsigned int i, n;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < NR_LENGTHS; i++) {
		/* Who waits, here and there; then who comes later */
		ask_for(&p.b, p.b.channel, "n", i);
		ask_for(&p.a, RDMATENSOR_CHANNEL_SELF, "n", i);
		side_none(&p.b, RDMATENSOR_CQE_FETCH, 2, 20);
		EQ(rdmatensor_step_abort(p.a.rt, i, -EIO, words(text, lengths[i], i)), 0);
		for (n = 0; n < 2; n++) {
			EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -EIO);
			says(&p.b, &cqe, text);
			if (!n)
				ask_for(&p.b, p.b.channel, "other", i);
		}
		EQ(side_next(&p.a, RDMATENSOR_CQE_FETCH, 2, &cqe), -EIO);
		says(&p.a, &cqe, text);
		/* Own fetches of a peer's tensor */
		ask_for(&p.b, p.b.channel, "n", 100 + i);
		EQ(rdmatensor_step_abort(p.b.rt, 100 + i, -EIO, text), 0);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -EIO);
		says(&p.b, &cqe, text);
	}
}

/* As much as the slot leaves, and what is cut says so */
TEST(texts_in_the_smallest_slots)
{
	char name[RDMATENSOR_NAME_MAX + 1], text[MOST + 1], cut[MOST + 1];
	static const unsigned int names[] = { 1, 448, 449, RDMATENSOR_NAME_MAX };
	struct rdmatensor_cqe cqe;
	unsigned int i, j, room, bytes;

	for (bytes = 1024; bytes <= 2048; bytes *= 2) {
		slot_bytes = bytes;
		pair_open(&p, 1 << 20, tune_slots);
		for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
			memset(name, 'n', names[i]);
			name[names[i]] = '\0';
			room = bytes - 64 - names[i];
			for (j = 0; j < NR_LENGTHS; j++) {
				publish_failed(&p.a, name, j, words(text, lengths[j], j));
				ask_for(&p.b, p.b.channel, name, j);
				EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
				strcpy(cut, text);
				if (lengths[j] > room)
					strcpy(cut + room - 3, "...");
				says(&p.b, &cqe, cut);
				CHECK(bytes == 1024 || !strcmp(cut, text));
			}
		}
		side_close(&p.b);
		side_close(&p.a);
	}
}

TEST(texts_without_control_characters)
{
	char text[MOST + 1], all[RDMATENSOR_STATUS_ROOM];
	struct rdmatensor_cqe cqe;
	unsigned int i;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < MOST; i++)
		text[i] = 1 + i % 255;
	text[MOST] = '\0';
	publish_failed(&p.a, "n", 0, text);
	ask_for(&p.b, p.b.channel, "n", 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
	EQ(ask(&p.b, cqe.text_id, all, sizeof(all)), MOST);
	for (i = 0; i < MOST; i++) {
		unsigned char was = text[i];

		if ((unsigned char)all[i] != (was < ' ' || was == 0x7f ? ' ' : was))
			break;
	}
	EQ(i, MOST);
}

/* As many as are kept, whichever are read; the same one after the other is kept once */
TEST(texts_are_kept_for_a_while)
{
	uint32_t ids[2 * RDMATENSOR_STATUS_TEXTS], nr = sizeof(ids) / sizeof(*ids), i;
	char text[MOST + 1], all[MOST];
	struct rdmatensor_cqe cqe;

	pair_open(&p, 1 << 20, NULL);
	for (i = 0; i < nr; i++) {
		publish_failed(&p.a, "n", i, words(text, 200, i));
		ask_for(&p.b, p.b.channel, "n", i);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
		ids[i] = cqe.text_id;
	}
	publish_failed(&p.a, "again", 0, text);
	ask_for(&p.b, p.b.channel, "again", 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
	EQ(cqe.text_id, ids[nr - 1]);
	for (i = 0; i < nr; i++)
		EQ(ask(&p.b, ids[i], all, sizeof(all)), i < nr / 2 ? -ENOENT : 200);
	EQ(ask(&p.b, 0, all, sizeof(all)), -ENOENT);
	EQ(ask(&p.b, ids[nr - 1] + 1, all, sizeof(all)), -ENOENT);
	/* Nobody else's */
	EQ(ask(&p.a, ids[nr - 1], all, sizeof(all)), -ENOENT);
	/* What there is room for, and no byte more */
	memset(all, 'x', sizeof(all));
	EQ(ask(&p.b, ids[nr - 1], all, 10), 200);
	CHECK(!memcmp(all, text, 10) && all[10] == 'x');
	EQ(ask(&p.b, ids[nr - 1], NULL, 0), 200);
	EQ(ask(&p.b, ids[nr - 1], NULL, 1), -EFAULT);
	/* The entry has the beginning all the same */
	cqe.text_id = ids[0];
	CHECK(strstr(rdmatensor_status_text(p.b.rt, &cqe, all, sizeof(all)), ": "));

	/* Whoever said it has gone */
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), 0);
	side_close(&p.a);
	EQ(ask(&p.b, ids[nr - 1], all, sizeof(all)), 200);
	CHECK(!memcmp(all, text, 200));
}

static struct {
	uint32_t newest;
	int stop;
	uint64_t right, gone, wrong;
} readers;

/* Reads what has just come, what is about to go, and what has gone */
static void *read_texts(void *unused)
{
	char all[MOST], want[MOST + 1];
	uint32_t n = 0, id, tag;
	int len;

	(void)unused;
	while (!__atomic_load_n(&readers.stop, __ATOMIC_ACQUIRE)) {
		id = __atomic_load_n(&readers.newest, __ATOMIC_ACQUIRE) - n++ % 80;
		len = ask(&p.b, id, all, sizeof(all));
		if (len == -ENOENT) {
			__atomic_fetch_add(&readers.gone, 1, __ATOMIC_RELAXED);
			continue;
		}
		/* Text number n is the n-th that was kept */
		tag = id;
		words(want, MOST, tag);
		__atomic_fetch_add(len == 300 && !memcmp(all, want, 300) ? &readers.right :
				   &readers.wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Threads on one handle, and bulk on the same channel */
TEST(texts_read_by_threads_beside_bulk)
{
	uint64_t began = rdmatensor_now_ns();
	struct rdmatensor_cqe cqe;
	pthread_t threads[4];
	char text[MOST + 1];
	uint32_t i, bulk;
	struct rdmatensor_op op;

	memset(&readers, 0, sizeof(readers));
	pair_open(&p, 32 << 20, NULL);
	publish(&p.a, "bulk", 0, 4 << 20, 1, 0, 9);
	bulk = side_alloc(&p.b, 4 << 20);
	for (i = 0; i < 4; i++)
		EQ(pthread_create(&threads[i], NULL, read_texts, NULL), 0);
	for (i = 1; i <= 300 || (readers.gone < 100 && ms_since(began) < 15000); i++) {
		rdmatensor_prep_fetch(&op, p.b.channel, "bulk", 0, p.b.pool.id, bulk, 4 << 20, 0,
				      3);
		if (i % 16 == 1)
			EQ(side_do(&p.b, &op), 0);
		publish_failed(&p.a, "n", i, words(text, 300, i));
		ask_for(&p.b, p.b.channel, "n", i);
		EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 2, &cqe), -ERANGE);
		EQ(cqe.text_id, i);
		__atomic_store_n(&readers.newest, i, __ATOMIC_RELEASE);
		EQ(side_next(&p.a, RDMATENSOR_CQE_PUBLISH, 1, NULL), 0);
		if (i % 16 == 0)
			EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 3, NULL), 0);
	}
	__atomic_store_n(&readers.stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 4; i++)
		EQ(pthread_join(threads[i], NULL), 0);
	printf("# %llu texts read, %llu had gone\n", (unsigned long long)readers.right,
	       (unsigned long long)readers.gone);
	CHECK(readers.right && readers.gone);
	EQ(readers.wrong, 0);
}
