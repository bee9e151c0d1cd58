// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Netlink messages, shown. The first two bytes say by which command and how receiving ends,
 * the rest is messages (kernel.h), which the mutator keeps in the form of attributes most of
 * the time. Whatever comes:
 * - JSON is JSON, an object for each message, or a line;
 * - a table has a line for each message, and nothing that is a command to a terminal;
 * - it ends with success, or says why not.
 */
#include <json-c/json.h>
#include <netlink/errno.h>
#include <rdmatensor/netlink.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "kernel.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* main.c's main() */
int tool_main(int argc, char **argv);

#define HEAD 2

static const struct how {
	const char *name;
	const char *args[8];
	/* A line for each message */
	bool lines;
	bool json;
	/* For the context first, by a dump of its own */
	bool looks;
} hows[] = {
	{ "contexts", { "show", "contexts" }, true, false, false },
	{ "channels", { "show", "channels" }, true, false, false },
	{ "pools", { "show", "pools" }, true, false, false },
	{ "requests", { "show", "requests" }, true, false, false },
	{ "tables", { "show", "tables" }, true, false, false },
	{ "monitor", { "monitor" }, true, false, false },
	{ "top", { "top", "-d", "0.25", "-n", "1" }, false, false, false },
	{ "contexts in JSON", { "show", "contexts", "-j" }, false, true, false },
	{ "channels in JSON", { "show", "channels", "-j" }, false, true, false },
	{ "requests in JSON", { "show", "requests", "-j" }, false, true, false },
	{ "one context in JSON", { "show", "channels", "-j", "7" }, false, true, true },
	{ "monitor in JSON", { "monitor", "-j" }, true, true, false },
	{ "metrics", { "metrics", "--format", "openmetrics" }, false, false, false },
	{ "top in JSON", { "top", "-j", "-d", "0.25", "-n", "1" }, false, true, false },
};

/* Of these: contexts in JSON */
#define LEARN_BY 7

static const int errors[] = { 0, -NLE_DUMP_INTR, -NLE_PERM, -NLE_NOMEM };

static unsigned int kinds[NR(hows)], error_kinds[NR(errors)], kind_rate, kind_lost;

/* Keys that messages have in JSON, and whether what comes has that */
static struct {
	char *key;
	unsigned int kind;
} keys[128];
static size_t nr_keys;
static bool learning, shown;

static void take_key(const char *key)
{
	size_t i;

	shown = true;
	for (i = 0; i < nr_keys; i++)
		if (!strcmp(keys[i].key, key)) {
			if (!learning)
				reached(keys[i].kind);
			return;
		}
	if (!learning)
		return;
	HOLDS(nr_keys < NR(keys));
	keys[nr_keys].key = strdup(key);
	HOLDS(keys[nr_keys].key);
	keys[nr_keys++].kind = to_reach("key %s", key);
}

static void take_object(struct json_object *object)
{
	size_t i;

	if (json_object_is_type(object, json_type_array))
		for (i = 0; i < json_object_array_length(object); i++)
			take_object(json_object_array_get_idx(object, i));
	if (!json_object_is_type(object, json_type_object))
		return;
	json_object_object_foreach(object, key, value) {
		take_key(key);
		take_object(value);
		if (!strcmp(key, "fetches_per_second"))
			reached(kind_rate);
	}
}

static size_t length_of_array;

static void take_line(struct json_object *object)
{
	length_of_array = json_object_is_type(object, json_type_array) ?
			  json_object_array_length(object) : 1;
	take_object(object);
}

static size_t lines_of(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

static void check_output(const struct how *how, const struct said *said, size_t messages)
{
	size_t nr = how->json ? check_json_lines(said->out, take_line) : lines_of(said->out);

	/* A table has a head */
	if (how->lines)
		HOLDS(nr == messages + !!strcmp(how->args[0], "monitor"));
	else if (how->json)
		HOLDS(nr == 1);
	else
		HOLDS(nr >= 3);
	if (how->json && !strcmp(how->args[0], "show"))
		HOLDS(length_of_array == messages);
	/* What printf() makes of no text, unless that was received */
	HOLDS(!strstr(said->out, "(null)") || memmem(kernel.data, kernel.size, "(null)", 6));
}

static void run(const struct how *how, int error, unsigned int nr_errors)
{
	char *argv[NR(how->args) + 2] = { "rdmatensor" };
	struct said said;
	int argc, ret;

	for (argc = 0; how->args[argc]; argc++)
		argv[argc + 1] = (char *)how->args[argc];
	kernel.turns = !strcmp(how->args[0], "top");
	kernel.error = error;
	kernel.errors = error ? nr_errors : 0;
	kernel.drops = error == -NLE_NOMEM ? nr_errors : 0;
	kernel.dumps = 0;
	optind = 0;
	tool_name = "";
	said_begin(&said);
	ret = tool_main(argc + 1, argv);
	said_end(&said);
	HOLDS(ret == EXIT_OK || (ret == EXIT_FAILED && said.err_len));
	if (!error)
		HOLDS(ret == EXIT_OK || (how->looks && !kernel.messages));
	check_clean(said.err);
	check_clean(said.out);
	if (ret == EXIT_OK && !error)
		check_output(how, &said, kernel.messages / (how->looks ? 2 : 1));
	else if (how->json)
		check_json_lines(said.out, take_line);
	if (strstr(said.out, "\"event\":\"lost\""))
		reached(kind_lost);
	said_free(&said);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	size_t how, error;

	if (size < HEAD)
		return;
	how = data[0] % NR(hows);
	error = data[1] / 8 % 8 ? 0 : data[1] % NR(errors);
	memset(&kernel, 0, sizeof(kernel));
	kernel.data = data + HEAD;
	kernel.size = size - HEAD;
	run(&hows[how], errors[error], 1 + data[1] % 16);
	if (kernel.messages) {
		reached(kinds[how]);
		reached(error_kinds[error]);
	}
}

/*
 * Messages
 */

struct stream {
	uint8_t bytes[4096];
	size_t len;
	size_t begun;
};

static void put(struct stream *stream, const void *bytes, size_t len)
{
	HOLDS(stream->len + len <= sizeof(stream->bytes));
	memcpy(stream->bytes + stream->len, bytes, len);
	stream->len += len;
}

static void put_attr(struct stream *stream, int type, const void *value, size_t len)
{
	static const char pad[4];
	const uint16_t head[2] = { (uint16_t)(4 + len), (uint16_t)type };

	put(stream, head, sizeof(head));
	put(stream, value, len);
	put(stream, pad, -len & 3);
}

static void begin(struct stream *stream, uint8_t how, uint8_t ends)
{
	const uint8_t head[HEAD] = { how, ends };

	stream->len = 0;
	put(stream, head, sizeof(head));
}

static void begin_message(struct stream *stream)
{
	/* Its length, to be filled in, and generic netlink's header */
	static const uint8_t head[6] = { 0, 0, RDMATENSOR_NL_CMD_EVENT, RDMATENSOR_NL_VERSION };

	stream->begun = stream->len;
	put(stream, head, sizeof(head));
}

static void end_message(struct stream *stream)
{
	size_t len = stream->len - stream->begun - 2;

	stream->bytes[stream->begun] = (uint8_t)len;
	stream->bytes[stream->begun + 1] = (uint8_t)(len >> 8);
}

/* A value for attributes of all kinds: it is a number, a text, an address, a nest */
static size_t value_of(int type, uint8_t which, uint8_t value[64])
{
	const uint16_t nest[2] = { 12, (uint16_t)(1 + which % 40) };
	const uint16_t lane[2] = { 8, RDMATENSOR_NL_A_QPN };

	memset(value, 0, 64);
	switch (type) {
	case RDMATENSOR_NL_A_COUNTERS:
	case RDMATENSOR_NL_A_LATENCY:
	case RDMATENSOR_NL_A_ERRORS:
		memcpy(value, nest, sizeof(nest));
		value[4] = which;
		return 12;
	case RDMATENSOR_NL_A_LANE:
	case RDMATENSOR_NL_A_READ_LANE:
		memcpy(value, lane, sizeof(lane));
		value[4] = which;
		return 8;
	case RDMATENSOR_NL_A_ADDR:
		value[0] = which % 2 ? 10 : 2;
		value[7] = 1;
		return 28;
	case RDMATENSOR_NL_A_GID:
		value[10] = which % 2 ? 0xff : 0;
		value[11] = 0xff;
		return 16;
	case RDMATENSOR_NL_A_COMM:
	case RDMATENSOR_NL_A_WORKER:
	case RDMATENSOR_NL_A_PEER:
	case RDMATENSOR_NL_A_TEXT:
	case RDMATENSOR_NL_A_TENSOR:
	case RDMATENSOR_NL_A_DEVICE:
	case RDMATENSOR_NL_A_CHOICE:
	case RDMATENSOR_NL_A_REQUEST_STATE:
		strcpy((char *)value, which % 2 ? "a \"name\"" : "rxe0");
		return 10;
	default:
		value[0] = which;
		return 8;
	}
}

static void put_all(struct stream *stream, uint8_t which, size_t less)
{
	uint8_t value[64];
	size_t len;
	int type;

	for (type = 1; type <= RDMATENSOR_NL_A_MAX; type++) {
		len = value_of(type, which, value);
		put_attr(stream, type, value, len > less ? len - less : 0);
	}
}

/* Each attribute's key is learned from a message that has it alone */
static void learn(void)
{
	struct stream stream = { .len = 0 };
	uint8_t value[64];
	size_t len;
	int type;

	learning = true;
	for (type = 1; type <= RDMATENSOR_NL_A_MAX; type++) {
		begin(&stream, 0, 0);
		begin_message(&stream);
		len = value_of(type, 1, value);
		put_attr(&stream, type, value, len);
		end_message(&stream);
		memset(&kernel, 0, sizeof(kernel));
		kernel.data = stream.bytes + HEAD;
		kernel.size = stream.len - HEAD;
		shown = false;
		run(&hows[LEARN_BY], 0, 0);
		HOLDS(shown == (type != RDMATENSOR_NL_A_PAD));
	}
	learning = false;
}

void fuzz_init(void)
{
	static const char *const ends[] = {
		"received", "interrupted", "not permitted", "lost",
	};
	size_t i;

	kind_rate = to_reach("a rate");
	kind_lost = to_reach("events that were lost are told");
	for (i = 0; i < NR(hows); i++)
		kinds[i] = to_reach("%s", hows[i].name);
	for (i = 0; i < NR(errors); i++)
		error_kinds[i] = to_reach("%s", ends[i]);
	learn();
}

void fuzz_seeds(void)
{
	struct stream stream = { .len = 0 };
	size_t how, error;
	uint8_t which, i;

	for (how = 0; how < NR(hows); how++)
		for (which = 0; which < 12; which++) {
			begin(&stream, (uint8_t)how, 8);
			for (i = 0; i < which % 4; i++) {
				begin_message(&stream);
				put_all(&stream, (uint8_t)(which + i / 2), 0);
				end_message(&stream);
			}
			seed(stream.bytes, stream.len);
		}
	for (how = 0; how < NR(hows); how++)
		for (error = 0; error < NR(errors); error++)
			for (i = 0; i < 16; i += 4) {
				begin(&stream, (uint8_t)how, (uint8_t)(i + error) & 7);
				begin_message(&stream);
				put_all(&stream, 1, i);
				end_message(&stream);
				seed(stream.bytes, stream.len);
			}
	/* Not even a header */
	begin(&stream, 0, 8);
	seed(stream.bytes, stream.len);
	put(&stream, "\3\0abc\0\0\1\0", 9);
	seed(stream.bytes, stream.len);
}

/* Of one attribute, and what is in it */
static void straighten(uint8_t *at, size_t size, unsigned int depth)
{
	uint16_t head[2];
	size_t step;

	for (; size >= sizeof(head); at += step, size -= step) {
		memcpy(head, at, sizeof(head));
		if (head[0] < sizeof(head) || head[0] > size)
			head[0] = (uint16_t)(sizeof(head) + (head[0] % 48 < size - sizeof(head) ?
					     head[0] % 48 : size - sizeof(head)));
		/* Some that are not known, or more than there are */
		head[1] %= RDMATENSOR_NL_A_MAX + 4;
		memcpy(at, head, sizeof(head));
		if (depth && (head[1] == RDMATENSOR_NL_A_LANE ||
			      head[1] == RDMATENSOR_NL_A_READ_LANE))
			straighten(at + sizeof(head), head[0] - sizeof(head), depth - 1);
		step = ((size_t)head[0] + 3) & ~(size_t)3;
		if (step > size)
			step = size;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t at, len;

	size = LLVMFuzzerMutate(data, size, max_size);
	for (at = HEAD; seed % 16 && at + 2 < size; at += len) {
		len = kernel_length(data + at);
		at += 2;
		if (len > size - at) {
			len = size - at;
			data[at - 2] = (uint8_t)len;
			data[at - 1] = (uint8_t)(len >> 8);
		}
		if (len > 4)
			straighten(data + at + 4, len - 4, 2);
	}
	return size;
}
