// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options that all subcommands take: they are START's fields. What is not given is
 * taken from the environment.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/params.h>

#include "message.h"
#include "options.h"
#include "params.h"

const char common_help[] =
	"\n"
	"Device and protocol:\n"
	"  -d, --device NAME        RDMA device, its network device or IP address\n"
	"                           (default: the only active one)\n"
	"  -i, --port N             its port, from 1 (default: the first active one)\n"
	"  -x, --gid-index N        index of its GID (default: found by address)\n"
	"      --listen ADDR:PORT   where peers connect to\n"
	"      --worker NAME        this worker's name (default: host-pid)\n"
	"      --lanes N            queue pairs of a channel, 1..8\n"
	"      --msg-slots N        message slots, a power of two up to 1024\n"
	"      --slot-bytes N       bytes of a slot, a power of two, 1024..65536\n"
	"      --ack-batch N        messages that one ack tells\n"
	"      --ring-entries N     entries of the completion ring\n"
	"      --stripe-bytes N     cut longer tensors over the lanes\n"
	"      --queue-depth N      work requests of a send queue\n"
	"      --mtu N              256, 512, 1024, 2048 or 4096\n"
	"      --rnr-retry N        receiver-not-ready retries, 0..7\n"
	"      --gather-lanes N     queue pairs to each owner of a table, 1..8\n"
	"      --cq-mod N           reads of a gather that are posted at once\n"
	"      --validate           check every content by CRC32C\n"
	"      --param NAME=VALUE   any of rdmatensor-params(7), as sl=0 or mtu=auto\n"
	"      --device-file FILE   instead of /dev/rdmatensor\n"
	"Output:\n"
	"  -j, --json               JSON on standard output\n"
	"  -v, --verbose            notes on standard error\n"
	"  -h, --help               this text\n";

/* Options by which they are set; the range is the parameter's */
static const struct {
	int opt;
	const char *option;
	const char *param;
} settings[] = {
	{ 'i', "--port", "port" },
	{ 'x', "--gid-index", "gid_index" },
	{ OPT_LANES, "--lanes", "lanes" },
	{ OPT_MSG_SLOTS, "--msg-slots", "msg_slots" },
	{ OPT_SLOT_BYTES, "--slot-bytes", "msg_slot_bytes" },
	{ OPT_ACK_BATCH, "--ack-batch", "ack_batch" },
	{ OPT_RING_ENTRIES, "--ring-entries", "ring_entries" },
	{ OPT_STRIPE_BYTES, "--stripe-bytes", "stripe_bytes" },
	{ OPT_QUEUE_DEPTH, "--queue-depth", "queue_depth" },
	{ OPT_MTU, "--mtu", "mtu" },
	{ OPT_RNR_RETRY, "--rnr-retry", "rnr_retry" },
	{ OPT_GATHER_LANES, "--gather-lanes", "gather_lanes" },
	{ OPT_CQ_MOD, "--cq-mod", "cq_mod" },
};

#define NR_SETTINGS (sizeof(settings) / sizeof(settings[0]))

void common_init(struct common *common)
{
	memset(common, 0, sizeof(*common));
	common->wait_ns = WAIT_DEFAULT;
	rdmatensor_start_init(&common->start, NULL);
}

int common_environment(struct common *common)
{
	char cause[512];

	if (rdmatensor_start_rest_from_env(&common->start, cause, sizeof(cause)))
		return misused("%s, or give the option in its place", cause);
	return EXIT_OK;
}

int parse_number(const char *option, const char *arg, int64_t min, int64_t max,
		 int64_t *out)
{
	char *end;
	intmax_t value;

	errno = 0;
	value = strtoimax(arg, &end, 10);
	if (errno || end == arg || *end || isspace((unsigned char)*arg) ||
	    value < min || value > max)
		return misused("%s %s is refused: give a number from %" PRId64 " to %" PRId64,
			       option, arg, min, max);
	*out = value;
	return EXIT_OK;
}

/* "4096", "4K", "8m", "1G", "1T" */
static int parse_units(const char *arg, uint64_t *out)
{
	static const char units[] = "kmgt";
	uint64_t value;
	const char *unit;
	char *end;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (errno || !isdigit((unsigned char)*arg))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		for (; unit >= units; unit--)
			if (__builtin_mul_overflow(value, UINT64_C(1024), &value))
				return -ERANGE;
	}
	*out = value;
	return 0;
}

int parse_size(const char *option, const char *arg, uint64_t max, uint64_t *out)
{
	uint64_t value;

	if (parse_units(arg, &value) || value > max)
		return misused("%s %s is refused: give bytes from 0 to %" PRIu64 ", as 4096, 4K, 8M, 1G or 1T",
			       option, arg, max);
	*out = value;
	return EXIT_OK;
}

int parse_seconds_in(const char *option, const char *arg, double least, double most,
		     uint64_t *ns)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(arg, &end);
	/* Neither "nan" nor "inf", nor a sign */
	if (errno || *end || (!isdigit((unsigned char)*arg) && *arg != '.') ||
	    !(value >= least && value <= most))
		return misused("%s %s is refused: give seconds from %.7g to %.7g",
			       option, arg, least, most);
	*ns = (uint64_t)(value * 1e9);
	return EXIT_OK;
}

int parse_seconds(const char *option, const char *arg, uint64_t *ns)
{
	return parse_seconds_in(option, arg, 0, 1000000, ns);
}

static int take_param(struct rdmatensor_start *start, const char *option, const char *name,
		      const char *arg)
{
	const struct param *param = param_find(name);
	char range[64];
	uint64_t value;

	if (!strcmp(arg, "auto"))
		value = RDMATENSOR_PARAM_AUTO;
	else if (parse_units(arg, &value) || value == RDMATENSOR_PARAM_AUTO)
		value = UINT64_MAX;
	if (rdmatensor_start_set(start, name, value))
		return misused("%s %s is refused: give a number from %s", option, arg,
			       param_range_text(param, range, sizeof(range)));
	return EXIT_OK;
}

/* NAME=VALUE */
static int take_named(struct rdmatensor_start *start, const char *arg)
{
	size_t len = strcspn(arg, "=");
	char name[32] = "", option[64];

	if (len < sizeof(name))
		memcpy(name, arg, len);
	/* Those without a variable are the host's, and no context's */
	if (!arg[len] || !param_find(name) || !*param_find(name)->variable)
		return misused("--param %s is refused: give NAME=VALUE, with one of the names that rdmatensor-params(7) has for a context",
			       arg);
	snprintf(option, sizeof(option), "--param %s", name);
	return take_param(start, option, name, arg + len + 1);
}

static int take_string(const char *option, const char *arg, char *to,
		       size_t to_len)
{
	size_t len = strlen(arg);

	if (!len || len >= to_len)
		return misused("%s %s is refused: give 1 to %zu bytes", option,
			       arg, to_len - 1);
	memset(to, 0, to_len);
	memcpy(to, arg, len);
	return EXIT_OK;
}

int common_option(struct common *common, int opt, const char *arg)
{
	struct rdmatensor_start *start = &common->start;
	size_t i;

	for (i = 0; i < NR_SETTINGS; i++)
		if (settings[i].opt == opt)
			return take_param(start, settings[i].option, settings[i].param, arg);
	switch (opt) {
	case 'd':
		return take_string("--device", arg, start->device_name,
				   sizeof(start->device_name));
	case OPT_WORKER:
		return take_string("--worker", arg, start->worker,
				   sizeof(start->worker));
	case OPT_VALIDATE:
		return take_param(start, "--validate", "validate", "1");
	case OPT_PARAM:
		return take_named(start, arg);
	case OPT_LISTEN:
		common->listen = arg;
		return EXIT_OK;
	case OPT_WAIT:
		return parse_seconds("--wait", arg, &common->wait_ns);
	case OPT_DEVICE_FILE:
		common->device_file = arg;
		return EXIT_OK;
	case 'j':
		common->json = true;
		return EXIT_OK;
	case 'v':
		be_verbose();
		return EXIT_OK;
	default:
		/* getopt_long() has said what is wrong */
		return point_to_help();
	}
}
