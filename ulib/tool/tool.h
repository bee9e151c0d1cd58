/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the subcommands share.
 */
#ifndef TOOL_H
#define TOOL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rdmatensor/rdmatensor.h>

/* Exit codes */
#define EXIT_OK 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2

/* Name under which `serve` publishes the JSON header of its file */
#define INDEX_NAME "rdmatensor.index"

/* main.c: name of the subcommand, for messages */
extern const char *tool_name;

/* The subcommands: take argv from their own name on, return an exit code */
int cmd_serve(int argc, char **argv);
int cmd_fetch(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_gather(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* message.c: lines on stderr */

/* Operation, object, cause, remedy; returns EXIT_FAILED */
int failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What goes on all the same, but is not as it should be */
void warned(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As failed(), and points to --help; returns EXIT_USAGE */
int misused(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The second half of it */
int point_to_help(void);
/* A note with --verbose only */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What a noun ends with behind @nr */
static inline const char *plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

/* Whether that is a terminal on which colours are wanted */
bool fd_has_colours(int fd);
bool stderr_has_colours(void);

/* options.c: options that all subcommands take */

/**
 * struct common - their values
 * @start: START's argument
 * @listen: --listen, or NULL
 * @device_file: --device-file, or NULL
 * @json: --json
 * @wait_ns: --wait: how long a peer that is not up yet is waited for; 0: not at all;
 *           WAIT_DEFAULT: as long as a connection may take, handshake_ms
 */
#define WAIT_DEFAULT UINT64_MAX
struct common {
	struct rdmatensor_start start;
	const char *listen;
	const char *device_file;
	bool json;
	uint64_t wait_ns;
};

/* Beyond any character */
enum {
	OPT_DEVICE_FILE = 256,
	OPT_LISTEN,
	OPT_WORKER,
	OPT_LANES,
	OPT_MSG_SLOTS,
	OPT_SLOT_BYTES,
	OPT_ACK_BATCH,
	OPT_RING_ENTRIES,
	OPT_STRIPE_BYTES,
	OPT_QUEUE_DEPTH,
	OPT_MTU,
	OPT_VALIDATE,
	OPT_RNR_RETRY,
	OPT_GATHER_LANES,
	OPT_CQ_MOD,
	OPT_PARAM,
	OPT_WAIT, /* of those that connect to a peer: not in COMMON_LONG */
	OPT_OWN, /* a subcommand's own ones begin here */
};

#define COMMON_SHORT "d:i:x:jhv"
#define COMMON_LONG                                                   \
	{ "device", required_argument, NULL, 'd' },                   \
	{ "port", required_argument, NULL, 'i' },                     \
	{ "gid-index", required_argument, NULL, 'x' },                \
	{ "json", no_argument, NULL, 'j' },                           \
	{ "help", no_argument, NULL, 'h' },                           \
	{ "verbose", no_argument, NULL, 'v' },                        \
	{ "device-file", required_argument, NULL, OPT_DEVICE_FILE },  \
	{ "listen", required_argument, NULL, OPT_LISTEN },            \
	{ "worker", required_argument, NULL, OPT_WORKER },            \
	{ "lanes", required_argument, NULL, OPT_LANES },              \
	{ "msg-slots", required_argument, NULL, OPT_MSG_SLOTS },      \
	{ "slot-bytes", required_argument, NULL, OPT_SLOT_BYTES },    \
	{ "ack-batch", required_argument, NULL, OPT_ACK_BATCH },      \
	{ "ring-entries", required_argument, NULL, OPT_RING_ENTRIES },\
	{ "stripe-bytes", required_argument, NULL, OPT_STRIPE_BYTES },\
	{ "queue-depth", required_argument, NULL, OPT_QUEUE_DEPTH },  \
	{ "mtu", required_argument, NULL, OPT_MTU },                  \
	{ "validate", no_argument, NULL, OPT_VALIDATE },              \
	{ "gather-lanes", required_argument, NULL, OPT_GATHER_LANES },\
	{ "cq-mod", required_argument, NULL, OPT_CQ_MOD },            \
	{ "param", required_argument, NULL, OPT_PARAM },              \
	{ "rnr-retry", required_argument, NULL, OPT_RNR_RETRY }

/* Their help, for the end of a subcommand's */
extern const char common_help[];

/* Defaults */
void common_init(struct common *common);
/* One option that getopt_long() returned; EXIT_OK or EXIT_USAGE */
int common_option(struct common *common, int opt, const char *arg);
/*
 * After the last option: what none of them has set, from the environment. EXIT_OK, or
 * EXIT_USAGE with a message
 */
int common_environment(struct common *common);

/* A number in a range; EXIT_OK, or EXIT_USAGE with a message */
int parse_number(const char *option, const char *arg, int64_t min, int64_t max,
		 int64_t *out);
/* As above, with K, M or G behind it for powers of 1024 */
int parse_size(const char *option, const char *arg, uint64_t max,
	       uint64_t *out);
/* A time in seconds, fractions allowed, as nanoseconds */
int parse_seconds(const char *option, const char *arg, uint64_t *ns);
/* The same within a range of seconds */
int parse_seconds_in(const char *option, const char *arg, double least, double most,
		     uint64_t *ns);

/* context.c: a started context */

/* The device's file: the option's, else the environment's, else the usual one */
const char *context_path(const struct common *common);
/* Opens only; EXIT_OK, or EXIT_FAILED with a message */
int context_open(const struct common *common, struct rdmatensor **out);
/* Opens and starts; EXIT_OK, or EXIT_FAILED with a message */
int context_start(struct common *common, struct rdmatensor **out);
/* Connects to a peer, which is waited for as --wait says; EXIT_OK, or EXIT_FAILED with a message */
int context_connect(struct rdmatensor *rt, const struct common *common, const char *peer,
		    const char *worker, uint32_t *channel);
/* As rdmatensor_connect(), with @wait_ns as in struct common */
int connect_within(struct rdmatensor *rt, uint64_t wait_ns, const char *peer, const char *worker,
		   uint32_t *channel, char *cause, size_t cause_len);
/* What is left of @wait_ns that began so long before @end_ns; 0 and WAIT_DEFAULT stay */
uint64_t wait_left(uint64_t wait_ns, uint64_t end_ns);
/* --wait as the timeout of an ioctl: 0: the default */
uint32_t wait_ms(uint64_t wait_ns);
/* All counters of the context; EXIT_OK, or EXIT_FAILED with a message */
int context_counters(struct rdmatensor *rt, uint64_t *counters);
/*
 * EXIT_OK: each of @in_flight operations has a place in the ring, beside the ends of
 * @channels; else with a message
 */
int context_ring_holds(struct rdmatensor *rt, unsigned int in_flight, unsigned int channels);
/*
 * As rdmatensor_wait(), but waits again after -EINTR, which it also ends with when the
 * process was stopped and goes on. What ends the process is not for a wait to see
 */
int context_wait(struct rdmatensor *rt, unsigned int nr, uint64_t deadline_ns);
/* "10.0.0.1:18521": where a started context listens */
const char *context_listen_text(struct rdmatensor *rt,
				const struct common *common, char *text,
				size_t len);
/* "rxe0 port 1 gid 2" */
const char *context_device_text(const struct rdmatensor_query *query,
				char *text, size_t len);
/* "fe80::1" or "10.0.0.1" */
const char *gid_text(const uint8_t gid[16], char *text, size_t len);

/* store.c: a pool with one region over all of it */

/**
 * struct store - a pool and its region
 * @pool: the pool
 * @offset: where the region begins
 */
struct store {
	struct rdmatensor_pool pool;
	uint64_t offset;
};

/* EXIT_OK, or EXIT_FAILED with a message */
int store_create(struct rdmatensor *rt, uint64_t bytes, struct store *store);
/* The same, but the message goes to @cause and is not said */
int store_create_cause(struct rdmatensor *rt, uint64_t bytes, struct store *store, char *cause,
		       size_t len);
/* For @nr of @bytes each, whatever these numbers are; in whole pages */
int store_create_array(struct rdmatensor *rt, uint64_t nr, uint64_t bytes, struct store *store);

/* No less than @bytes: as long as no pool is, if 64 bits do not count that many */
static inline uint64_t align_up(uint64_t bytes, uint64_t align)
{
	return bytes > UINT64_MAX - align ? UINT64_MAX : (bytes + align - 1) / align * align;
}

/* Regions are this far apart at least; one of 0 bytes has a place as well */
static inline uint64_t align_region(uint64_t bytes)
{
	uint64_t align = RDMATENSOR_REGION_ALIGN;

	return bytes ? align_up(bytes, align) : align;
}

/* files.c: pool memory from and to a file, nothing in between */

struct progress;

/**
 * struct piece - one stretch of memory; in the file they follow each other
 * @base: first byte
 * @bytes: length
 */
struct piece {
	void *base;
	uint64_t bytes;
};

/* 0 or a negative errno; -ENODATA: the file has ended */
int file_read(int fd, uint64_t at, const struct piece *pieces, size_t nr,
	      struct progress *progress);
/* From the beginning; @stream: where there are no positions */
int file_write(int fd, bool stream, const struct piece *pieces, size_t nr,
	       struct progress *progress);

/* progress.c: a bar on stderr, on a terminal only */

/**
 * struct progress - a bar
 * @what: word in front of it
 * @total: bytes of the whole
 * @done: bytes so far
 * @started_ns: when it began
 * @drawn_ns: when it was last drawn
 * @on: whether there is a terminal
 */
struct progress {
	const char *what;
	uint64_t total;
	uint64_t done;
	uint64_t started_ns;
	uint64_t drawn_ns;
	bool on;
};

void progress_begin(struct progress *progress, const char *what,
		    uint64_t total);
void progress_add(struct progress *progress, uint64_t bytes);
/* Wipes the bar */
void progress_end(struct progress *progress);

/* stop.c: SIGINT and SIGTERM */

/* From here on the signals are kept for stop_wait() */
void stop_init(void);
/*
 * Waits until the ring has entries, a signal has come, or the deadline. True:
 * it was a signal, or the device has gone.
 */
bool stop_wait(struct rdmatensor *rt, uint64_t deadline_ns);
/*
 * Waits until there is something to read, a signal has come, or @ms have passed; -1: no
 * end. @fd -1: nothing to read. True: a signal
 */
bool stop_wait_fd(int fd, int ms);
/*
 * Around what may wait for others, as a write into a pipe that nobody reads: between these
 * a signal is not kept, and the write ends with EINTR. One that comes right before the
 * write is kept all the same; the next one ends it
 */
void stop_unblock(void);
void stop_block(void);
/* Whether a signal has come */
bool stop_requested(void);

/* output.c: JSON on stdout, and what is read out of it */

struct json_object;

/*
 * Prints it as one line and gives it back. What it prints is JSON, whatever bytes names
 * and texts have: in one that is no UTF-8 each byte that is not becomes U+FFFD, and a
 * member beside it, of the same name with _hex behind it, has all bytes
 */
void print_json(struct json_object *object);
/* What was printed has arrived: EXIT_OK, or EXIT_FAILED with a message. Flushes */
int output_arrived(void);
/* Adds every counter of after - before (NULL: 0) under its own name */
void add_counters(struct json_object *object, const uint64_t *after,
		  const uint64_t *before);
/* Adds a string, number; the object takes over the value */
void add_string(struct json_object *object, const char *key, const char *value);
void add_number(struct json_object *object, const char *key, uint64_t value);
void add_double(struct json_object *object, const char *key, double value);
/* A member's; 0 or NULL: there is none. The text is the object's */
uint64_t number_of(struct json_object *object, const char *key);
const char *text_of(struct json_object *object, const char *key);
/* put_text() of a member that is a text; nothing if there is none. True: there is one */
bool put_member(FILE *to, struct json_object *object, const char *key);

#endif
