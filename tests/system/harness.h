/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small harness: TAP, a time limit for each test, and pairs of contexts.
 *
 * Each test is a function that starts from nothing. A failed EQ() or CHECK() says
 * what was expected and ends the test; what the test had opened is closed.
 */
#ifndef RDMATENSOR_TEST_HARNESS_H
#define RDMATENSOR_TEST_HARNESS_H

#include <rdmatensor/rdmatensor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
	const char *name;
	const char *file;
	void (*fn)(void);
	struct test *next;
};

void test_register(struct test *test);
void test_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/*
 * In a child process. Return: what @fn does, 0 to 254; 255: a check in it has failed; 256 and more: a
 * signal ended it
 */
int test_child(int (*fn)(void));
/* The same, but for the wait. Return: its pid */
pid_t test_child_begin(int (*fn)(void));

/*
 * In a process that gives up what it could not get back: a user who may lock @limit bytes.
 * @fn returns 0, or the line that failed, of the file where this stands
 */
#define AS_USER(limit, fn) test_as_user(__FILE__, limit, 1, fn)
/* The same on a host where pools of kernel pages do not count */
#define AS_USER_UNCOUNTED(limit, fn) test_as_user(__FILE__, limit, 0, fn)
void test_as_user(const char *file, uint64_t limit, unsigned int memlock, int (*fn)(void));

/* Writes @text to a file that is there, at once. Return: whether all of it was taken */
int file_put(const char *path, const char *text);
/* Sets the module's parameter, for all tests that come */
void test_param(const char *name, unsigned int value);

/* What the running test has changed for those that come is undone by @fn, however it ends */
void test_at_end(void (*fn)(void));

/* A long test that gets on: its time begins again */
void test_alive(void);

/* Milliseconds since then, which rdmatensor_now_ns() has told */
uint64_t ms_since(uint64_t began_ns);

/* User-Mode Linux has neither userfaultfd nor memory cgroups, and no system calls of 32 bits */
int test_on_uml(void);
/* Contexts are in strict mode unless they say otherwise */
int test_strict(void);

/* One for stock kernels */
#define TEST_STOCK(_name) TEST_IF(_name, !test_on_uml())
/* One of what strict mode has not: destinations that are kept, pools that peers write at large */
#define TEST_POOL(_name) TEST_IF(_name, !test_strict())
#define TEST(_name) TEST_IF(_name, 1)

#define TEST_IF(_name, _cond) \
	static void _name(void); \
	static struct test test_##_name = { #_name, __FILE__, _name, NULL }; \
	__attribute__((constructor)) static void register_##_name(void) \
	{ \
		if (_cond) \
			test_register(&test_##_name); \
	} \
	static void _name(void)

/* Checks of the running test. One that has made none has shown nothing, and fails */
extern unsigned long test_checks;

#define CHECK(_cond) \
	do { \
		test_checks++; \
		if (!(_cond)) \
			test_fail(__FILE__, __LINE__, "not so: %s", #_cond); \
	} while (0)

#define EQ(_got, _want) \
	do { \
		long long got_ = (long long)(_got), want_ = (long long)(_want); \
		test_checks++; \
		if (got_ != want_) \
			test_fail(__FILE__, __LINE__, "%s is %lld, expected %lld", #_got, \
				  got_, want_); \
	} while (0)

/* Where the contexts of this test listen and connect: LAB_IP, or what was set */
const char *test_ip(void);
void test_set_ip(const char *ip);
/* HOST:PORT, as the library wants it */
void test_addr(char *addr, size_t room, uint32_t port);

/**
 * struct side - one worker
 * @rt: its context
 * @pool: its pool
 * @channel: to the other side
 * @port: where it listens
 * @kept: entries that were reaped before they were asked for
 */
struct side {
	struct rdmatensor *rt;
	struct rdmatensor_pool pool;
	uint32_t channel;
	uint32_t port;
	struct rdmatensor_cqe *kept;
	unsigned int nr_kept;
	/* All of the pool is one region, of which so much has been used: side_pools_by() */
	int whole;
	uint64_t used;
};

/* How side_open() makes pools; without it they are of kernel pages */
void side_pools_by(void (*make)(struct side *side, uint64_t bytes));

/* @a publishes and listens, @b has connected to it and fetches */
struct pair {
	struct side a;
	struct side b;
};

/*
 * A context that is started; @tune may change START, NULL: defaults, but for pages of memory
 * regions: the second of a pair has short ones. Closed after the test
 */
void side_open(struct side *side, const char *worker, uint64_t pool_bytes, int listen,
	       void (*tune)(struct rdmatensor_start *start));
/* One that the test opened itself: side->rt is set. Closed after the test */
void side_adopt(struct side *side);
void side_close(struct side *side);
void side_connect(struct side *from, struct side *to);
void pair_open(struct pair *pair, uint64_t pool_bytes,
	       void (*tune)(struct rdmatensor_start *start));

/* Keys of the only pool of this host that is so long, as `show pools` says */
unsigned int keys_of(uint64_t bytes);
/* The number between @before, which begins a line of the file @path, and @after */
long number_in(const char *path, const char *before, const char *after);

uint64_t side_alloc(struct side *side, uint64_t bytes);
unsigned char *side_at(struct side *side, uint64_t offset);
/* Bytes that depend on @seed and place */
void fill(unsigned char *at, uint64_t bytes, unsigned int seed);
int filled(const unsigned char *at, uint64_t bytes, unsigned int seed);

/* One operation. Return: its error */
int side_do(struct side *side, const struct rdmatensor_op *op);
/* The entry of that type and user_data, within 20 s. Return: its result */
int side_next(struct side *side, int type, uint64_t user_data, struct rdmatensor_cqe *cqe);
/* No such entry is there or comes within @ms */
void side_none(struct side *side, int type, uint64_t user_data, int ms);
/* Entries of that type that have come and were not asked for are not wanted any more */
void side_forget(struct side *side, int type);
uint64_t side_stat(struct side *side, int stat);

/* Publishes @bytes of uint8 [bytes] at a new region, filled by @seed. Return: its offset */
uint64_t publish(struct side *side, const char *name, int64_t step, uint64_t bytes,
		 unsigned int seed, uint32_t uses, uint64_t user_data);
/* Fetches to an own region of @room bytes, and waits. Return: the result; *at: where */
int fetch(struct side *side, const char *name, int64_t step, uint64_t room, uint64_t *at,
	  struct rdmatensor_cqe *cqe);

#endif
