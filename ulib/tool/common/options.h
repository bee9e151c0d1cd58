/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Options of all commands that have a context: they are START's fields.
 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

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

#endif
