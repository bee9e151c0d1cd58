// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The subcommands as a whole, on the fake device: files that they write, JSON
 * that they print, and their exit codes.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "fake.h"
#include "served.h"
#include "safetensors/safetensors.h"
#include "tool/cmd/commands.h"
#include "tool/cmd/perf/samples.h"
#include "tool/common/context.h"
#include "tool/common/message.h"
#include "tool/common/published.h"
#include "tool/common/server.h"
#include "tool/common/store.h"
#include "unit.h"

static char dir[256], model[300], output[300];

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	fake_reset();
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	snprintf(dir, sizeof(dir), "%s/tool-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(model, sizeof(model), "%s/model", dir);
	snprintf(output, sizeof(output), "%s/output", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(model);
	unlink(output);
	/* Nothing else may be left behind */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static struct json_object *parse_line(const char *line)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *object;

	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	object = json_tokener_parse_ex(tok, line, (int)strlen(line));
	if (!object || json_tokener_get_error(tok) != json_tokener_success)
		fail_msg("no JSON: %s", line);
	json_tokener_free(tok);
	return object;
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no %s in %s", key, json_object_get_string(object));
	return value;
}

static const struct st_tensor tensors[] = {
	{ .name = "layer.0", .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2,
	  .dims = { 7, 11 } },
	{ .name = "nothing", .data_type = RDMATENSOR_DT_INT64, .ndims = 2,
	  .dims = { 0, 3 } },
	{ .name = "odd", .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
	  .dims = { 13 } },
	{ .name = "scalar", .data_type = RDMATENSOR_DT_DOUBLE },
	{ .name = "last \"quoted\"", .data_type = RDMATENSOR_DT_BOOL,
	  .ndims = 1, .dims = { 1000 } },
};

static void make_model(void)
{
	static const char *const metadata[] = { "made", "by a test", NULL };
	char error[ST_ERROR_MAX];
	struct st_file file;
	uint64_t i;
	int fd;

	assert_int_equal(st_make(tensors, NR(tensors), metadata, &file, error,
				 sizeof(error)), 0);
	fd = open(model, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(st_write_header(fd, &file), 0);
	for (i = 0; i < file.data_bytes; i++) {
		unsigned char byte = (unsigned char)(i * 7 + 1);

		assert_int_equal(pwrite(fd, &byte, 1,
					(off_t)(st_data_offset(&file) + i)), 1);
	}
	close(fd);
	st_free(&file);
}

static void assert_same_files(const char *a, const char *b)
{
	static char x[65536], y[65536];
	int fd_x = open(a, O_RDONLY), fd_y = open(b, O_RDONLY);
	ssize_t nx = read(fd_x, x, sizeof(x)), ny = read(fd_y, y, sizeof(y));

	close(fd_x);
	close(fd_y);
	assert_true(nx > 0);
	assert_int_equal(nx, ny);
	assert_memory_equal(x, y, (size_t)nx);
}

static void test_all(void **state)
{
	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL },
			  NR(tensors) + 1);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output),
			 EXIT_OK);
	assert_contains(text, "fetched 5 tensors, 1329 bytes");
	assert_same_files(model, output);
	/* Over and over the same file, two at a time, and with places found */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output, "-q",
			     "2"), EXIT_OK);
	assert_same_files(model, output);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output,
			     "--alloc"), EXIT_OK);
	assert_same_files(model, output);
	server_end_with(EXIT_OK);
}

/* Of each kind of memory on both sides; and from the file itself, which stays as it is */
static void test_memories(void **state)
{
	static char *const kinds[] = { "kernel", "anon", "memfd", "file" };
	char copy[] = "/tmp/rdmatensor-copy";
	unsigned int i;

	(void)state;
	make_model();
	assert_int_equal(RUN(cmd_serve, "--memory", "tin", model), EXIT_USAGE);
	assert_contains(messages, "give kernel, anon, memfd, huge, dmabuf or file");
	assert_int_equal(RUN(cmd_fetch, "p", "-a", "-o", output, "--memory", "file"), EXIT_USAGE);
	assert_contains(messages, "give kernel, anon, memfd, huge or dmabuf");
	assert_int_equal(RUN(cmd_fetch, "p", "-a", "-o", output, "--memory", "anon", "--alloc"),
			 EXIT_USAGE);
	for (i = 0; i < NR(kinds); i++) {
		server_start_with((char *[]){ model, "--exit-after", "1", "--memory", kinds[i],
				  NULL }, NR(tensors) + 1);
		assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", copy, "--memory",
				     kinds[i % 3]), EXIT_OK);
		assert_same_files(model, copy);
		server_end_with(EXIT_OK);
	}
	fake.pool_error = -EACCES;
	assert_int_equal(RUN(cmd_serve, "--memory", "file", model), EXIT_FAILED);
	assert_contains(messages, "POOL_REGISTER: as the test wants");
	unlink(copy);
}

static void test_steps(void **state)
{
	struct json_object *root, *steps, *step;
	size_t i;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", "--step", "4",
			  "--steps", "3", NULL }, 3 * (NR(tensors) + 1));
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output,
			     "--step", "4", "--steps", "3", "--json"), EXIT_OK);
	assert_same_files(model, output);
	root = parse_line(text);
	assert_string_equal(json_object_get_string(get(root, "peer_worker")),
			    "peer \"quoted\"");
	steps = get(root, "steps");
	assert_int_equal(json_object_array_length(steps), 3);
	for (i = 0; i < 3; i++) {
		step = json_object_array_get_idx(steps, i);
		assert_int_equal(json_object_get_int64(get(step, "step")),
				 4 + i);
		assert_int_equal(json_object_get_int64(get(step, "tensors")),
				 NR(tensors));
		assert_int_equal(json_object_get_int64(get(step, "rx_contents")),
				 NR(tensors));
		assert_int_equal(json_object_get_int64(get(step, "rdma_writes")),
				 2 * NR(tensors));
	}
	json_object_put(root);
	/* A step that is not there is the index's error */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output,
			     "--step", "9"), EXIT_FAILED);
	assert_contains(messages, "step 9");
	/* and the last of several that of all tensors; the file stays */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output,
			     "--step", "5", "--steps", "3", "--alloc"),
			 EXIT_FAILED);
	assert_contains(messages, "fetch 5 tensors, \"layer.0\" and others, step 7, from 10.0.0.1: not within --timeout");
	/* What is not there is not asked for any more when one of them has failed */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output,
			     "--step", "5", "--steps", "3", "-q", "1"), EXIT_FAILED);
	assert_contains(messages, "fetch tensor \"layer.0\", step 7, from 10.0.0.1: not within --timeout");
	assert_contains(messages, "4 more tensors of step 7 were not asked for");
	assert_same_files(model, output);
	server_end_with(EXIT_OK);
}

/* Which of the JSON's peers */
static struct json_object *peer_of(struct json_object *root, size_t i)
{
	return json_object_array_get_idx(get(root, "peers"), i);
}

/* Another channel, in the index and in the steps, with tensors in flight or without */
static void fetch_again(unsigned int at, bool flies, int error)
{
	struct json_object *root;

	fake.fetches_until_down = at;
	fake.flies = flies;
	fake.down_error = error;
	unlink(output);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "--steps", "2",
			     "--json"), EXIT_OK);
	assert_int_equal(fake.fetches_until_down, 0);
	assert_same_files(model, output);
	assert_contains(messages, "warning: 10.0.0.1: ");
	assert_contains(messages, ": connecting again");
	assert_contains(messages, "warning: 10.0.0.1: connected again");
	root = parse_line(text);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "reconnects")), 1);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "tensors")), 2 * NR(tensors));
	assert_string_equal(json_object_get_string(get(peer_of(root, 0), "state")), "up");
	json_object_put(root);
}

/* The index takes two fetches */
static void test_again(void **state)
{
	static const int errors[] = { 0, -EPROTO, -ETIMEDOUT };
	unsigned int at, i;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", "--steps", "2", NULL },
			  2 * (NR(tensors) + 1));
	for (at = 1; at <= 2 + 2 * NR(tensors); at++) {
		fetch_again(at, false, 0);
		for (i = 0; i < NR(errors); i++)
			fetch_again(at, true, errors[i]);
	}
	/* What was in flight by the former channel, and comes late, is not taken */
	fake.ghosts = true;
	fake.regions = fake.frees = 0;
	fake.fetches_until_down = 2 + 4;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "--alloc"), EXIT_OK);
	assert_same_files(model, output);
	/* Three were, of which one has no bytes; and all that were made for them are free again */
	assert_int_equal(fake.frees, 2);
	assert_int_equal(fake.regions - fake.frees, NR(tensors) - 1);
	fake.ghosts = false;
	fake.flies = false;
	fake.down_error = 0;
	fake.fetches_until_down = 1;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "odd", "-o", output, "--alloc"), EXIT_OK);
	/* Without a bound the kernel's own is each attempt's */
	fake.fetches_until_down = 3;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "--timeout", "0"),
			 EXIT_OK);
	assert_int_equal(fake.connected.timeout_ms, 0);
	fake.fetches_until_down = 3;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output), EXIT_OK);
	assert_in_range(fake.connected.timeout_ms, 25000, 30000);
	/* An attempt can end with what passes */
	fake.fetches_until_down = 3;
	fake.connect_bad = fake.connects + 2;
	fake.connect_bad_error = -EDQUOT;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output), EXIT_OK);
	assert_same_files(model, output);
	/* and with what does not */
	fake.fetches_until_down = 3;
	fake.connect_bad = fake.connects + 2;
	fake.connect_bad_error = -ENOENT;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output), EXIT_FAILED);
	assert_contains(messages, "fetch 5 tensors, \"layer.0\" and others, step 0, from 10.0.0.1: the channel has gone down: ");
	assert_int_equal(fake.connects, fake.connect_bad);
	server_end_with(EXIT_OK);
}

/* A ring that cannot be waited for ends the command: it is not looked at for ever */
static void test_no_wait(void **state)
{
	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, NR(tensors) + 1);
	fake.flies = true;
	fake.wait_error = -EIO;
	fake.wait_errors = 1000;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "odd", "layer.0", "-o", output), EXIT_FAILED);
	assert_contains(messages, "fetch tensor \"odd\", step 0, from 10.0.0.1: Input/output error");
	assert_in_range(fake.wait_errors, 900, 998);
	fake.wait_errors = 0;
	fake.flies = false;
	server_end_with(EXIT_OK);
}

/* What the former worker has sent is not mixed with what the next one sends */
static void test_restarted(void **state)
{
	char *alloc[] = { "--json", "--alloc" };
	struct json_object *root;
	size_t i;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, NR(tensors) + 1);
	fake.restarts = true;
	for (i = 0; i < 2 * NR(alloc); i++) {
		fake.flies = i & 1;
		fake.fetches_until_down = 2 + 3;
		assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "-q", "1",
				     "--json", alloc[i / 2]), EXIT_OK);
		assert_same_files(model, output);
		assert_contains(messages, "10.0.0.1 was started anew: its 2 tensors of step 0");
		/* One of them has no bytes, and no region that another one's would be taken for */
		assert_int_equal(fake.bad_frees, 0);
		root = parse_line(text);
		assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "tensors")),
				 NR(tensors) + 2);
		json_object_put(root);
	}
	/* A peer that never gets far is no progress */
	fake.fetches_until_down = 2 + 2;
	fake.fetches_each = 2;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "-q", "1"), EXIT_FAILED);
	assert_contains(messages, "it was started anew too often");
	fake.fetches_each = 0;
	server_end_with(EXIT_OK);
}

/* Of another model nothing is taken, and nobody waits for what it has not */
static void test_other_model(void **state)
{
	struct json_object *root, *one;
	uint64_t began;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, NR(tensors) + 1);
	fake.restarts = true;
	fake.flies = true;
	fake.other_index_from = 2;
	fake.fetches_until_down = 2 + 3;
	began = rdmatensor_now_ns();
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "-q", "1"), EXIT_FAILED);
	assert_true(rdmatensor_now_ns() - began < 3000000000);
	assert_contains(messages, "from 10.0.0.1: the channel has gone down: Connection reset by peer; then: it was started anew, and serves another model now");
	assert_int_equal(fake.disconnects, 1);
	/*
	 * Another peer still has it, and what came from the former worker is of that model, too. It
	 * sends nothing before it is known that the first one does not
	 */
	fake.stalls = true;
	fake.other_index_from = 3;
	fake.fetches_until_down = 4 + 3;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-q", "1", "-j"),
			 EXIT_OK);
	assert_same_files(model, output);
	assert_contains(messages, "warning: 10.0.0.1 is given up: it was started anew, and serves another model now");
	root = parse_line(text);
	one = peer_of(root, 0);
	assert_string_equal(json_object_get_string(get(one, "state")), "down");
	assert_contains(json_object_get_string(get(one, "error")), "another model");
	assert_int_equal(json_object_get_int64(get(one, "tensors")) +
			 json_object_get_int64(get(peer_of(root, 1), "tensors")), NR(tensors));
	json_object_put(root);
	assert_int_equal(fake.disconnects, 2);
	server_end_with(EXIT_OK);
}

/* As long as --timeout says, and then it is told what happened first and what last */
static void test_given_up(void **state)
{
	uint64_t began, took;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, NR(tensors) + 1);
	fake.connects_most = fake.connects + 1;
	fake.fetches_until_down = 2 + 2;
	began = rdmatensor_now_ns();
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "--timeout", "0.3"),
			 EXIT_FAILED);
	took = rdmatensor_now_ns() - began;
	assert_in_range(took, 300000000, 3000000000);
	assert_contains(messages, "step 0, from 10.0.0.1: the channel has gone down: Connection reset by peer; then: connect: nobody listens there: start the peer\n");
	assert_int_equal(access(output, F_OK), -1);
	/* The same before it is known what there is */
	fake.connects_most = fake.connects + 1;
	fake.fetches_until_down = 1;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "odd", "-o", output, "--timeout", "0.1"),
			 EXIT_FAILED);
	assert_contains(messages, "the channel has gone down");
	assert_contains(messages, "nobody listens");
	fake.connects_most = 0;
	server_end_with(EXIT_OK);
}

static void test_peers(void **state)
{
	struct json_object *root;

	(void)state;
	assert_int_equal(RUN(cmd_fetch, "p,q", "name", "-o", output), EXIT_USAGE);
	assert_contains(messages, "several PEERs are refused with names");
	assert_int_equal(RUN(cmd_fetch, "p,,q", "-a", "-o", output), EXIT_USAGE);
	assert_contains(messages, "PEER 2 of 3 is empty");
	assert_int_equal(RUN(cmd_fetch, "p,q,p", "-a", "-o", output), EXIT_USAGE);
	assert_contains(messages, "PEER p is given twice");
	/* By other names */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.1:18521", "-a", "-o", output), EXIT_FAILED);
	assert_contains(messages, "PEERs 10.0.0.1 and 10.0.0.1:18521 are the same worker");
	assert_int_equal(RUN(cmd_fetch, "p,q", "-a", "-o", output, "--peer-worker", "w"),
			 EXIT_USAGE);
	assert_contains(messages, "--peer-worker is refused");
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, NR(tensors) + 1);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-j"),
			 EXIT_OK);
	assert_same_files(model, output);
	root = parse_line(text);
	assert_string_equal(json_object_get_string(get(root, "peer")), "10.0.0.1,10.0.0.2");
	assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "tensors")),
			 (NR(tensors) + 1) / 2);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 1), "tensors")), NR(tensors) / 2);
	json_object_put(root);
	/* One of them is enough */
	fake.connects_most = fake.connects + 2;
	fake.fetches_until_down = 4 + 2;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-j",
			     "-q", "2", "--timeout", "0.2"), EXIT_OK);
	assert_same_files(model, output);
	/* The thread that nobody needs any more closes the context; the server's is left */
	while (fake_open() > 1)
		usleep(1000);
	/* But not in the beginning, when it is not known what it has */
	fake.connects_most = fake.connects + 1;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "--wait", "0"),
			 EXIT_FAILED);
	assert_contains(messages, "nobody listens there: start the peer; or leave this PEER out");
	fake.connects_most = 0;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,10.0.0.6,10.0.0.7,10.0.0.8,10.0.0.9,10.0.0.10,10.0.0.11,10.0.0.12,10.0.0.13,10.0.0.14,10.0.0.15,10.0.0.16",
			     "--all", "-o", output, "--ring-entries", "16"), EXIT_FAILED);
	assert_contains(messages, "16 PEERs: the completion ring has 16 entries");
	server_end_with(EXIT_OK);
}

/* What one peer has not, another one is asked for; and it is used as soon as it can be reached */
static void test_other_peer(void **state)
{
	struct json_object *root;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, NR(tensors) + 1);
	fake.empty_channel = 1;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-j"),
			 EXIT_OK);
	assert_same_files(model, output);
	root = parse_line(text);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "tensors")), 0);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "refused")), 3);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 1), "tensors")), NR(tensors));
	json_object_put(root);
	assert_contains(messages, "warning: 10.0.0.1 has not sent 3 tensors, \"layer.0\" and others, step 0, within --timeout");
	/* One at a time: after the first it is asked last */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-j", "-q", "1"),
			 EXIT_OK);
	root = parse_line(text);
	assert_int_equal(json_object_get_int64(get(peer_of(root, 0), "refused")), 1);
	json_object_put(root);
	/* What has another type there is not that tensor, and its place is free again */
	fake.other_type = true;
	fake.regions = fake.frees = 0;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-j",
			     "--alloc"), EXIT_OK);
	assert_same_files(model, output);
	assert_int_equal(fake.regions - fake.frees, NR(tensors) - 1);
	fake.other_type = false;
	/* The last one says why it cannot */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output), EXIT_FAILED);
	assert_contains(messages, "fetch 5 tensors, \"layer.0\" and others, step 0, from 10.0.0.1: not within --timeout");
	/* One peer's tensors do not end before the other one's next channel is up */
	fake.empty_channel = 0;
	/* In the next step it is asked again, if the other one has not what it had */
	server_end_with(EXIT_OK);
	server_start_with((char *[]){ model, "--exit-after", "1", "--steps", "2", NULL },
			  2 * (NR(tensors) + 1));
	fake.lacking = "layer.0";
	fake.lacking_worker = 1;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-q", "1"),
			 EXIT_OK);
	assert_null(fake.lacking);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-q", "1",
			     "--steps", "2"), EXIT_OK);
	fake.flies = true;
	fake.fetches_until_down = 4 + 2;
	fake.stalls = true;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1,10.0.0.2", "--all", "-o", output, "-q", "2"),
			 EXIT_OK);
	assert_same_files(model, output);
	server_end_with(EXIT_OK);
}

/* @nr tensors of a byte each */
static void make_many(unsigned int nr)
{
	struct st_tensor *many = calloc(nr, sizeof(*many));
	char (*names)[16] = calloc(nr, sizeof(*names)), error[ST_ERROR_MAX];
	struct st_file file;
	unsigned int i;
	int fd;

	assert_non_null(many);
	assert_non_null(names);
	for (i = 0; i < nr; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		many[i].name = names[i];
		many[i].data_type = RDMATENSOR_DT_UINT8;
	}
	assert_int_equal(st_make(many, nr, NULL, &file, error, sizeof(error)), 0);
	fd = open(model, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(st_write_header(fd, &file), 0);
	close(fd);
	st_free(&file);
	free(names);
	free(many);
}

/* The ends of many channels fill no small ring, and each tensor is progress */
static void test_many_ends(void **state)
{
	(void)state;
	make_many(100);
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, 101);
	fake.flies = true;
	fake.fetches_until_down = 4;
	fake.fetches_each = 3;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o", output, "-q", "2",
			     "--ring-entries", "16"), EXIT_OK);
	assert_same_files(model, output);
	fake.fetches_each = 0;
	server_end_with(EXIT_OK);
}

/* Elements that are shorter than a byte go with their header, which alone knows them */
static void test_short_types(void **state)
{
	static const char header[] =
		"{\"a\":{\"dtype\":\"F4\",\"shape\":[3,2],\"data_offsets\":[0,3]},"
		"\"b\":{\"dtype\":\"F8_E8M0\",\"shape\":[2],\"data_offsets\":[3,5]}}";
	char error[ST_ERROR_MAX];
	struct st_file file;
	int fd;

	(void)state;
	assert_int_equal(st_parse(header, strlen(header), 5, &file, error, sizeof(error)), 0);
	fd = open(model, O_RDWR | O_CREAT, 0600);
	assert_int_equal(st_write_header(fd, &file), 0);
	assert_int_equal(pwrite(fd, "abcde", 5, (off_t)st_data_offset(&file)), 5);
	close(fd);
	st_free(&file);
	server_start_with((char *[]){ model, "--exit-after", "1", NULL }, 3);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output), EXIT_OK);
	assert_same_files(model, output);
	/* By its name alone it cannot be put into a file */
	unlink(output);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "a", "-o", output), EXIT_FAILED);
	assert_contains(messages, "tensor \"a\"");
	server_end_with(EXIT_OK);
}

/* As many at the same time as was asked for, or as the ring has entries */
static void test_in_flight(void **state)
{
	(void)state;
	make_many(1200);
	server_start_with((char *[]){ model, "--exit-after", "1", "--ring-entries", "2048", NULL },
			  1201);
	fake.lazy = true;
	fake.flying_most = 0;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output, "-q", "1024",
			     "--ring-entries", "2048"), EXIT_OK);
	assert_int_equal(fake.flying_most, 1024);
	assert_same_files(model, output);
	fake.flying_most = 0;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output, "-q", "128",
			     "--ring-entries", "64"), EXIT_OK);
	/* Two places are for the channel: its end, and the index of a worker that takes its place */
	assert_int_equal(fake.flying_most, 62);
	assert_same_files(model, output);
	/* These fill the ring with one of them, and it is what is measured */
	assert_int_equal(RUN(cmd_perf, "10.0.0.1", "-q", "64", "--ring-entries", "64"),
			 EXIT_FAILED);
	assert_contains(messages, "--ring-entries 128");
	assert_int_equal(RUN(cmd_gather, "10.0.0.1", "10.0.0.2", "-q", "63", "--ring-entries", "64"),
			 EXIT_FAILED);
	assert_contains(messages, "--ring-entries 128");
	fake.lazy = false;
	server_end_with(EXIT_OK);
}

/* Numbers whose product 64 bits do not count */
static void test_products(void **state)
{
	(void)state;
	assert_int_equal(RUN(cmd_gather, "--server", "--rows", "0:2305843009213693953",
			     "--row-bytes", "8"), EXIT_FAILED);
	assert_contains(messages, "does not fit into 64 bits");
	assert_int_equal(RUN(cmd_gather, "--server", "--rows", "0:2305843009213693951",
			     "--row-bytes", "8"), EXIT_FAILED);
	assert_contains(messages, "pool of");
	assert_int_equal(RUN(cmd_gather, "--server", "--rows", "0:99999999999999999999"), EXIT_USAGE);
	assert_contains(messages, "START:END");
}

static void test_names(void **state)
{
	const struct st_tensor *tensor;
	char error[ST_ERROR_MAX];
	unsigned char bytes[13];
	struct st_file file;
	int fd;

	(void)state;
	make_model();
	server_start_with((char *[]){ model, "--exit-after", "1", NULL },
			  NR(tensors) + 1);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "odd", "nothing", "scalar",
			     "-o", output), EXIT_OK);
	if (st_open(output, &file, &fd, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(file.nr, 3);
	tensor = st_find(&file, "odd");
	assert_non_null(tensor);
	assert_int_equal(tensor->bytes, 13);
	assert_int_equal(pread(fd, bytes, 13, (off_t)(st_data_offset(&file) +
						      tensor->begin)), 13);
	assert_int_equal(bytes[0], (unsigned char)(7 * 11 * 4 * 7 + 1));
	close(fd);
	st_free(&file);
	/* The index itself has a type that no file can hold */
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "rdmatensor.index", "-o",
			     output), EXIT_FAILED);
	assert_contains(messages, "element type 7");
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "unknown", "-o", output),
			 EXIT_FAILED);
	assert_contains(messages, "tensor \"unknown\"");
	assert_contains(messages, "has not published it");
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "odd", "-o",
			     "/no/such/dir/x"), EXIT_FAILED);
	assert_contains(messages, "/no/such/dir/x");
	server_end_with(EXIT_OK);
}

/* A peer's index is as little to be trusted as a file */
static void test_hostile_index(void **state)
{
	static const char *const bad[] = {
		"{\"a\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,8]}}",
		"nothing at all",
	};
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor_op op;
	struct rdmatensor *rt;
	uint64_t at;
	size_t i;

	(void)state;
	rdmatensor_start_init(&start, "hostile");
	assert_int_equal(rdmatensor_open(FAKE_PATH, &rt), 0);
	assert_int_equal(rdmatensor_start(rt, &start), 0);
	assert_int_equal(rdmatensor_pool_create(rt, 4096, &pool), 0);
	assert_int_equal(rdmatensor_pool_alloc(rt, &pool, 4096, &at), 0);
	for (i = 0; i < NR(bad); i++) {
		memcpy((char *)pool.base + at, bad[i], strlen(bad[i]));
		rdmatensor_prep_publish(&op, INDEX_NAME, 0, pool.id, at,
					strlen(bad[i]), RDMATENSOR_DT_STRING, 0,
					NULL, 0, 0);
		assert_int_equal(rdmatensor_submit(rt, &op, 1, 0, 0, NULL), 0);
		assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "--all", "-o",
				     output), EXIT_FAILED);
		assert_contains(messages, "index of 10.0.0.1: ");
		assert_int_equal(rdmatensor_withdraw(rt, INDEX_NAME, 0), 0);
	}
	rdmatensor_close(rt);
}

static void test_serve_errors(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(RUN(cmd_serve, model), EXIT_FAILED);
	assert_contains(messages, "No such file");
	fd = open(model, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, "no model, but some text", 23), 23);
	close(fd);
	assert_int_equal(RUN(cmd_serve, model), EXIT_FAILED);
	assert_contains(messages, "is this a safetensors file?");
	make_model();
	fake.pool_error = -EOVERFLOW;
	assert_int_equal(RUN(cmd_serve, model), EXIT_FAILED);
	assert_contains(messages, "device cannot register that much");
	fake.open_error = -ENOENT;
	assert_int_equal(RUN(cmd_serve, model), EXIT_FAILED);
	assert_contains(messages, "modprobe rdmatensor");
	fake.open_error = -EACCES;
	assert_int_equal(RUN(cmd_serve, model), EXIT_FAILED);
	assert_contains(messages, "group");
}

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(RUN(cmd_serve, "--help"), EXIT_OK);
	assert_contains(text, "Usage: rdmatensor serve");
	assert_int_equal(RUN(cmd_fetch, "--help"), EXIT_OK);
	assert_contains(text, "--in-flight");
	assert_int_equal(RUN(cmd_perf, "--help"), EXIT_OK);
	assert_int_equal(RUN(cmd_info, "--help"), EXIT_OK);
	assert_int_equal(RUN(cmd_serve, "a", "b"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_serve, "--steps", "0", "a"), EXIT_USAGE);
	assert_contains(messages, "--steps 0 is refused");
	assert_int_equal(RUN(cmd_serve, "--no-such"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_fetch, "--all", "-o", "x"), EXIT_USAGE);
	assert_contains(messages, "give a PEER");
	assert_int_equal(RUN(cmd_fetch, "peer", "--all"), EXIT_USAGE);
	assert_contains(messages, "-o OUT");
	assert_int_equal(RUN(cmd_fetch, "peer", "--all", "name", "-o", "x"),
			 EXIT_USAGE);
	assert_int_equal(RUN(cmd_fetch, "peer", "-o", "x"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_fetch, "peer", "-a", "-o", "x", "-t", "-1"),
			 EXIT_USAGE);
	assert_int_equal(RUN(cmd_fetch, "peer", "-a", "-o", "x", "-t", "1s"),
			 EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "--mtu", "1500", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "--msg-slots", "3", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "--lanes", "9", "p"), EXIT_USAGE);
	assert_contains(messages, "--lanes 9 is refused: give a number from 1..8");
	assert_int_equal(RUN(cmd_perf, "--queue-depth", "15", "p"), EXIT_USAGE);
	assert_contains(messages, "16..16384");
	assert_int_equal(RUN(cmd_perf, "--ring-entries", "8", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "--stripe-bytes", "4G", "p"), EXIT_USAGE);
	assert_contains(messages, "1..4294967294");
	assert_int_equal(RUN(cmd_perf, "--stripe-bytes", "0", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_top, "-d", "0"), EXIT_USAGE);
	assert_contains(messages, "0.01 to 3600");
	assert_int_equal(RUN(cmd_top, "-n", "0"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_top, "1", "2"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_top, "x"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_doctor, "1.2.3.4", "5.6.7.8"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_doctor, "--lanes", "0"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "-s", "4K,,x", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "-s", "99999999999G", "p"), EXIT_USAGE);
	/* Options are decimal; that parameters are not is in test_start.c */
	assert_int_equal(RUN(cmd_perf, "-s", "0x1000", "p"), EXIT_USAGE);
	assert_contains(messages, "0x1000 is refused: give bytes");
	assert_int_equal(RUN(cmd_perf, "--lanes", "0x1", "p"), EXIT_USAGE);
	assert_contains(messages, "--lanes 0x1 is refused: give a number from 1..8");
	assert_int_equal(RUN(cmd_perf, "-m", "both", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "--server", "p"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "-v"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "-d", "", "p"), EXIT_USAGE);
	setenv("RDMA_QP_SL", "99", 1);
	assert_int_equal(RUN(cmd_info, "-j"), EXIT_USAGE);
	assert_contains(messages, "RDMA_QP_SL=99");
	assert_contains(messages, "give the option");
	/* It stands in the way of nobody who does not need it */
	assert_int_equal(RUN(cmd_info, "-h"), EXIT_OK);
	assert_int_equal(RUN(cmd_info, "-j", "--param", "sl=0"), EXIT_OK);
	unsetenv("RDMA_QP_SL");
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(RUN(cmd_info, "10.0.0.9"), EXIT_FAILED);
	assert_contains(messages, "nobody listens");
	assert_int_equal(RUN(cmd_info, "10.0.0.9:x"), EXIT_FAILED);
}

/* How long CONNECT is told to wait */
static void assert_waits(uint32_t flags, uint32_t timeout_ms)
{
	assert_int_equal(fake.connected.flags, flags);
	assert_int_equal(fake.connected.timeout_ms, timeout_ms);
	memset(&fake.connected, 0xff, sizeof(fake.connected));
}

/* What is no slice is refused before anything is asked for */
static void test_slices(void **state)
{
	static const struct {
		const char *slice, *message;
	} cases[] = {
		{ "w", "--slice w is refused: give NAME=RANGE[,RANGE]...: write START:STOP" },
		{ "=1", "give NAME=RANGE" },
		{ "w=", "is refused at range 1: write START:STOP for each dimension" },
		{ "w=1,", "is refused at range 2" },
		{ "w=2:1", "is refused at range 1" },
		{ "w=:,x", "is refused at range 2" },
		{ "w=-1", "is refused at range 1" },
		{ "w=9223372036854775808", "is refused at range 1" },
		{ "w=99999999999999999999:", "is refused at range 1" },
		{ "w=::2", "is refused at \":2\"" },
		{ "w=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "no tensor has more than 16 dimensions" },
		{ "v=1", "\"v\" is none of the names: name it as well" },
		{ "w=w=1", "\"w=w\" is none of the names" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(RUN(cmd_fetch, "peer", "w", "-o", "x", "--slice", (char *)cases[i].slice),
				 EXIT_USAGE);
		assert_contains(messages, cases[i].message);
	}
	assert_int_equal(RUN(cmd_fetch, "peer", "w", "-o", "x", "--slice", "w=1", "--slice", "w=:"),
			 EXIT_USAGE);
	assert_contains(messages, "\"w\" has one already: fetch one part at a time");
	assert_int_equal(RUN(cmd_fetch, "peer", "-a", "-o", "x", "--slice", "w=1"), EXIT_USAGE);
	assert_contains(messages, "--slice is refused with --all");
}

/* Which file it is, and what to do about it */
static void test_open(void **state)
{
	static const struct {
		int error;
		const char *words;
	} errors[] = {
		{ -ENOENT, "modprobe rdmatensor" }, { -EACCES, "be root" },
		{ -EMFILE, "Too many open files" },
	};
	struct rdmatensor *rt;
	char cause[256];
	size_t i;

	(void)state;
	for (i = 0; i < NR(errors); i++) {
		fake.open_error = errors[i].error;
		assert_int_equal(rdmatensor_open_cause(NULL, &rt, cause, sizeof(cause)),
				 errors[i].error);
		assert_contains(cause, "open " FAKE_PATH ": ");
		assert_contains(cause, errors[i].words);
		assert_int_equal(RUN(cmd_info, "-j"), EXIT_FAILED);
		assert_contains(messages, cause);
	}
	fake.open_error = 0;
	assert_int_equal(rdmatensor_open_cause("/dev/null", &rt, cause, sizeof(cause)), -ENOTTY);
	assert_contains(cause, "no rdmatensor device");
}

/* What no file can have is not asked for */
static void test_bad_names(void **state)
{
	char longer[RDMATENSOR_NAME_MAX + 2];

	(void)state;
	memset(longer, 'n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", longer, "-o", output), EXIT_USAGE);
	assert_contains(messages, "has 513 bytes: a tensor's name has 1 to 512");
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "", "-o", output), EXIT_USAGE);
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "a\xff", "-o", output), EXIT_USAGE);
	assert_contains(messages, "\"a\\xff\" is not UTF-8");
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "a", "b", "a", "-o", output), EXIT_USAGE);
	assert_contains(messages, "\"a\" is given twice");
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "a", "-o", "-"), EXIT_USAGE);
	assert_contains(messages, "./-");
	assert_int_equal(fake.connects, 0);
}

/* What a name has is no command to a terminal, and no line of its own */
static void test_hostile_names(void **state)
{
	(void)state;
	assert_int_equal(RUN(cmd_fetch, "10.0.0.1", "a\033[2J\nrdmatensor: error: b", "-o", output),
			 EXIT_FAILED);
	assert_contains(messages, "a\\x1b[2J\\x0ardmatensor: error: b");
	assert_null(strchr(messages, '\033'));
	assert_null(strstr(messages, "\nrdmatensor: error: b"));
}

static void test_wait(void **state)
{
	(void)state;
	fake.connect_error = -ECONNREFUSED;
	RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output);
	assert_waits(0, 0);
	RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output, "--wait", "0");
	assert_waits(RDMATENSOR_CONNECT_NOWAIT, 0);
	assert_contains(messages, "nobody listens");
	RUN(cmd_fetch, "10.0.0.1", "-a", "-o", output, "--wait", "2.5", "--peer-worker", "w");
	assert_waits(0, 2500);
	RUN(cmd_perf, "10.0.0.1", "--wait", "0.0001");
	assert_waits(0, 1);
	RUN(cmd_perf, "10.0.0.1", "--wait", "0", "--peer-worker", "w");
	assert_string_equal(fake.connected.worker, "w");
	assert_waits(RDMATENSOR_CONNECT_NOWAIT, 0);
	RUN(cmd_gather, "10.0.0.1", "--wait", "1000000");
	assert_waits(0, 1000000000);
	/* What is there now */
	RUN(cmd_info, "10.0.0.1");
	assert_waits(RDMATENSOR_CONNECT_NOWAIT, 0);
	assert_int_equal(RUN(cmd_perf, "p", "--wait", "soon"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_perf, "p", "--wait", "-1"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_info, "p", "--wait", "1"), EXIT_USAGE);
}

/* A process that was stopped and goes on has its waits interrupted */
static void test_interrupted(void **state)
{
	struct rdmatensor_start start = { 0 };
	struct rdmatensor *rt;

	(void)state;
	assert_int_equal(rdmatensor_open(FAKE_PATH, &rt), 0);
	assert_int_equal(rdmatensor_start(rt, &start), 0);
	fake.wait_error = -EINTR;
	fake.wait_errors = 3;
	assert_int_equal(context_wait(rt, 1, rdmatensor_deadline_ms(10)), -ETIME);
	assert_int_equal(fake.waits, 4);
	rdmatensor_close(rt);
}

static const char *any_name(void *arg, uint64_t i, int64_t *step)
{
	(void)i;
	*step = 0;
	return arg;
}

/* A server ends in time although there is always something else to look at */
static void test_busy_end(void **state)
{
	struct rdmatensor_start start = { 0 };
	struct server ending = { 0 };
	uint64_t begun = rdmatensor_now_ns();
	char name[] = "x";

	(void)state;
	assert_int_equal(rdmatensor_open(FAKE_PATH, &ending.rt), 0);
	assert_int_equal(rdmatensor_start(ending.rt, &start), 0);
	fake.busy = true;
	alarm(20);
	server_withdraw(&ending, 1, any_name, name, rdmatensor_deadline_ms(50));
	alarm(0);
	assert_in_range(rdmatensor_now_ns() - begun, 50000000, UINT64_C(10000000000));
	rdmatensor_close(ending.rt);
}

static void test_info(void **state)
{
	struct json_object *root, *channel;

	(void)state;
	assert_int_equal(RUN(cmd_info, "-j"), EXIT_OK);
	root = parse_line(text);
	assert_false(json_object_get_boolean(get(root, "started")));
	json_object_put(root);
	assert_int_equal(RUN(cmd_info, "-j", "10.0.0.1"), EXIT_OK);
	root = parse_line(text);
	assert_string_equal(json_object_get_string(get(root, "device")),
			    "fake0");
	assert_string_equal(json_object_get_string(get(root, "gid")),
			    "10.0.0.1");
	channel = json_object_array_get_idx(get(root, "channels"), 0);
	assert_string_equal(json_object_get_string(get(channel, "state")),
			    "up");
	assert_int_equal(json_object_object_length(get(root, "counters")),
			 RDMATENSOR_STAT_NR);
	json_object_put(root);
	assert_int_equal(RUN(cmd_info, "--start"), EXIT_OK);
	assert_contains(text, "device: fake0\n");
	assert_contains(text, "  tx_writes: 0\n");
}

static struct rdmatensor *perf_rt;

static void perf_publish(uint64_t size, uint64_t told)
{
	static struct rdmatensor_pool pool;
	struct rdmatensor_start start;
	struct rdmatensor_op op;
	uint64_t dim = size;
	uint64_t at, i;
	char name[64];

	rdmatensor_start_init(&start, "perf");
	assert_int_equal(rdmatensor_open(FAKE_PATH, &perf_rt), 0);
	assert_int_equal(rdmatensor_start(perf_rt, &start), 0);
	assert_int_equal(rdmatensor_pool_create(perf_rt, size + 8, &pool), 0);
	assert_int_equal(rdmatensor_pool_alloc(perf_rt, &pool, size + 8, &at),
			 0);
	for (i = 0; i <= size / 8; i++)
		((uint64_t *)pool.base)[i] = (i + 1) *
					     UINT64_C(0x9e3779b97f4a7c15);
	snprintf(name, sizeof(name), "rdmatensor.perf.%lu",
		 (unsigned long)told);
	rdmatensor_prep_publish(&op, name, 0, pool.id, at, size,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	assert_int_equal(rdmatensor_submit(perf_rt, &op, 1, 0, 0, NULL), 0);
}

static void test_perf(void **state)
{
	static const char *const keys[] = {
		"name", "size", "lanes", "depth", "iters", "seconds",
		"bytes_per_second", "fetches_per_second", "lat_us",
		"tx_messages", "rx_contents", "tx_acks", "submits",
	};
	static const char *const lat[] = { "min", "avg", "p50", "p99", "max" };
	struct json_object *rows, *row;
	size_t i;

	(void)state;
	perf_publish(4099, 4099);
	assert_int_equal(RUN(cmd_perf, "10.0.0.1", "-s", "4099", "-q", "16",
			     "-n", "1000", "-j"), EXIT_OK);
	rows = parse_line(text);
	assert_int_equal(json_object_array_length(rows), 1);
	row = json_object_array_get_idx(rows, 0);
	for (i = 0; i < NR(keys); i++)
		get(row, keys[i]);
	for (i = 0; i < NR(lat); i++)
		get(get(row, "lat_us"), lat[i]);
	assert_string_equal(json_object_get_string(get(row, "name")),
			    "bw_4099");
	assert_int_equal(json_object_get_int64(get(row, "iters")), 1000);
	assert_int_equal(json_object_get_int64(get(row, "rx_contents")), 1000);
	/* The fake ends all at once: one call for each round of 16 */
	assert_in_range(json_object_get_int64(get(row, "submits")), 1, 100);
	json_object_put(rows);
	assert_int_equal(RUN(cmd_perf, "10.0.0.1", "-m", "lat", "-s", "4099",
			     "-D", "0.05"), EXIT_OK);
	assert_contains(text, "lat_4099");
	assert_int_equal(RUN(cmd_perf, "10.0.0.1", "-s", "5000"), EXIT_FAILED);
	assert_contains(messages, "perf --server");
	assert_int_equal(RUN(cmd_perf, "--server", "--max-size", "0"), EXIT_USAGE);
	assert_contains(messages, "--max-size 0 is refused");
	/* What was measured before is not lost */
	assert_int_equal(RUN(cmd_perf, "10.0.0.1", "-s", "4099,5000", "-n", "10", "-j"),
			 EXIT_FAILED);
	rows = parse_line(text);
	assert_int_equal(json_object_array_length(rows), 1);
	json_object_put(rows);
	rdmatensor_close(perf_rt);
	/* A tensor of another length than its name tells */
	fake_reset();
	perf_publish(64, 128);
	assert_int_equal(RUN(cmd_perf, "10.0.0.1", "-s", "128"), EXIT_FAILED);
	assert_contains(messages, "it has 64 bytes");
	rdmatensor_close(perf_rt);
}

static void test_samples(void **state)
{
	struct samples samples;
	uint64_t i;

	(void)state;
	assert_int_equal(samples_init(&samples), 0);
	assert_int_equal(samples_percentile(&samples, 50), 0);
	for (i = 1000; i >= 1; i--)
		samples_add(&samples, i);
	samples_sort(&samples);
	assert_int_equal(samples.min, 1);
	assert_int_equal(samples.max, 1000);
	assert_int_equal(samples.sum, 500500);
	assert_int_equal(samples_percentile(&samples, 0), 1);
	assert_int_equal(samples_percentile(&samples, 50), 500);
	assert_int_equal(samples_percentile(&samples, 99), 990);
	assert_int_equal(samples_percentile(&samples, 100), 1000);
	/* More than are kept: extremes and sum stay exact */
	samples_reset(&samples);
	for (i = 0; i < 3 * (uint64_t)SAMPLES_MAX; i++)
		samples_add(&samples, i);
	samples_sort(&samples);
	assert_int_equal(samples.count, 3 * (uint64_t)SAMPLES_MAX);
	assert_int_equal(samples.max, 3 * (uint64_t)SAMPLES_MAX - 1);
	assert_in_range(samples_percentile(&samples, 50),
			3 * (uint64_t)SAMPLES_MAX * 49 / 100,
			3 * (uint64_t)SAMPLES_MAX * 51 / 100);
	samples_free(&samples);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_all),
		test(test_no_wait),
		test(test_memories),
		test(test_steps),
		test(test_again),
		test(test_restarted),
		test(test_other_model),
		test(test_given_up),
		test(test_peers),
		test(test_other_peer),
		test(test_names),
		test(test_many_ends),
		test(test_short_types),
		test(test_in_flight),
		test(test_products),
		test(test_hostile_index),
		test(test_serve_errors),
		test(test_usage),
		test(test_slices),
		test(test_open),
		test(test_bad_names),
		test(test_hostile_names),
		test(test_wait),
		test(test_interrupted),
		test(test_busy_end),
		test(test_info),
		test(test_perf),
		test(test_samples),
	};

	return cmocka_run_group_tests_name("tool", tests, NULL, NULL);
}
