// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options that all subcommands take: they are START's fields. The environment
 * comes first, an option overrides it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "tool.h"

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
	"      --queue-depth N      work requests of a queue\n"
	"      --mtu N              256, 512, 1024, 2048 or 4096\n"
	"      --rnr-retry N        receiver-not-ready retries, 0..7\n"
	"      --validate           check every content by CRC32C\n"
	"      --device-file FILE   instead of /dev/rdmatensor\n"
	"Output:\n"
	"  -j, --json               JSON on standard output\n"
	"  -v, --verbose            notes on standard error\n"
	"  -h, --help               this text\n";

/**
 * struct field - an option that is a __u32 of START
 * @opt: what getopt_long() returns
 * @name: as the user writes it
 * @offset: of the __u32
 * @min: least value
 * @max: greatest value
 * @flag: START flag that says that the value is meant, or 0
 * @power_of_two: only powers of two
 */
struct field {
	int opt;
	const char *name;
	size_t offset;
	uint32_t min;
	uint32_t max;
	uint32_t flag;
	bool power_of_two;
};

#define FIELD(member) offsetof(struct rdmatensor_start, member)

static const struct field fields[] = {
	{ 'i', "--port", FIELD(port), 1, 255, 0, false },
	{ 'x', "--gid-index", FIELD(gid_index), 0, 255,
	  RDMATENSOR_START_GID_INDEX, false },
	{ OPT_LANES, "--lanes", FIELD(lanes), 1, RDMATENSOR_LANES_MAX, 0,
	  false },
	{ OPT_MSG_SLOTS, "--msg-slots", FIELD(msg_slots), 1, 1024, 0, true },
	{ OPT_SLOT_BYTES, "--slot-bytes", FIELD(msg_slot_bytes), 1024, 65536,
	  0, true },
	{ OPT_ACK_BATCH, "--ack-batch", FIELD(ack_batch), 1, 1024, 0, false },
	{ OPT_RING_ENTRIES, "--ring-entries", FIELD(ring_entries), 1, 1 << 20,
	  0, false },
	{ OPT_QUEUE_DEPTH, "--queue-depth", FIELD(queue_depth), 1, 65535, 0,
	  false },
	{ OPT_MTU, "--mtu", FIELD(mtu), 256, 4096, 0, true },
	{ OPT_RNR_RETRY, "--rnr-retry", FIELD(rnr_retry), 0, 7,
	  RDMATENSOR_START_RNR_RETRY, false },
};

int common_init(struct common *common)
{
	char cause[512];

	memset(common, 0, sizeof(*common));
	rdmatensor_start_init(&common->start, NULL);
	if (rdmatensor_start_from_env(&common->start, cause, sizeof(cause)))
		return misused("%s", cause);
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

int parse_size(const char *option, const char *arg, uint64_t max, uint64_t *out)
{
	static const char units[] = "kmg";
	uint64_t value;
	const char *unit;
	char *end;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (errno || !isdigit((unsigned char)*arg))
		goto bad;
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || end[1])
			goto bad;
		for (; unit >= units; unit--)
			if (__builtin_mul_overflow(value, UINT64_C(1024),
						   &value))
				goto bad;
	}
	if (value > max)
		goto bad;
	*out = value;
	return EXIT_OK;
bad:
	return misused("%s %s is refused: give bytes from 0 to %" PRIu64 ", as 4096, 4K, 8M or 1G",
		       option, arg, max);
}

int parse_seconds(const char *option, const char *arg, uint64_t *ns)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(arg, &end);
	if (errno || *end || !isdigit((unsigned char)*arg) ||
	    !(value <= 1e6))
		return misused("%s %s is refused: give seconds from 0 to 1000000",
			       option, arg);
	*ns = (uint64_t)(value * 1e9);
	return EXIT_OK;
}

static int take_field(struct common *common, const struct field *field,
		      const char *arg)
{
	uint32_t number;
	int64_t value;
	int err;

	err = parse_number(field->name, arg, field->min, field->max, &value);
	if (err)
		return err;
	number = (uint32_t)value;
	if (field->power_of_two && number & (number - 1))
		return misused("%s %s is refused: give a power of two from %" PRIu32 " to %" PRIu32,
			       field->name, arg, field->min, field->max);
	memcpy((char *)&common->start + field->offset, &number, sizeof(number));
	common->start.flags |= field->flag;
	return EXIT_OK;
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
	uint64_t bytes;
	size_t i;
	int err;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].opt == opt)
			return take_field(common, &fields[i], arg);
	switch (opt) {
	case 'd':
		return take_string("--device", arg, start->device_name,
				   sizeof(start->device_name));
	case OPT_WORKER:
		return take_string("--worker", arg, start->worker,
				   sizeof(start->worker));
	case OPT_STRIPE_BYTES:
		err = parse_size("--stripe-bytes", arg, INT64_MAX, &bytes);
		if (!err)
			start->stripe_bytes = bytes;
		return err;
	case OPT_VALIDATE:
		start->flags |= RDMATENSOR_START_VALIDATE;
		return EXIT_OK;
	case OPT_LISTEN:
		common->listen = arg;
		return EXIT_OK;
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
