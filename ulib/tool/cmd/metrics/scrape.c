// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The dumps are read attribute by attribute, and not as JSON as the other commands do: a scrape of
 * hundreds of channels comes every few seconds, beside their work.
 */
#include <inttypes.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"
#include "scrape.h"
#include "tool/common/gid.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"

/**
 * struct attrs - a message
 * @by: its attributes by type; NULL: it is not there
 */
struct attrs {
	struct nlattr *by[RDMATENSOR_NL_A_MAX + 1];
};

/**
 * struct reading - a dump on its way
 * @scrape: where it goes
 * @kind: of what is dumped
 * @series: of the dumps before
 * @left_out: by the dumps before
 */
struct reading {
	struct scrape *scrape;
	enum kind kind;
	uint64_t series;
	uint64_t left_out;
};

static uint32_t number(struct nlattr *attr)
{
	return attr && nla_len(attr) >= (int)sizeof(uint32_t) ? nla_get_u32(attr) : 0;
}

static uint64_t wide(struct nlattr *attr)
{
	return attr && nla_len(attr) >= (int)sizeof(uint64_t) ? nla_get_u64(attr) : 0;
}

/* Attributes of @nest, of type 1 + i, into values[i]. Return: which there are, the first 64 */
static uint64_t read_values(struct nlattr *nest, uint64_t *values, int nr)
{
	struct nlattr *attr;
	uint64_t known = 0;
	int left, i;

	if (!nest)
		return 0;
	nla_for_each_nested(attr, nest, left) {
		i = nla_type(attr) - 1;
		if (i < 0 || i >= nr || nla_len(attr) < (int)sizeof(uint64_t))
			continue;
		values[i] = nla_get_u64(attr);
		if (i < 64)
			known |= UINT64_C(1) << i;
	}
	return known;
}

static void read_sums(struct subject *subject, const struct attrs *attrs, enum kind kind)
{
	subject->known = read_values(attrs->by[RDMATENSOR_NL_A_COUNTERS], subject->counters,
				     RDMATENSOR_STAT_NR) & counters_of(kind);
	read_values(attrs->by[RDMATENSOR_NL_A_LATENCY], subject->latency,
		    RDMATENSOR_NL_LATENCY_NR);
	read_values(attrs->by[RDMATENSOR_NL_A_ERRORS], subject->errors, RDMATENSOR_NL_ERRORS_NR);
}

static char *device_label(struct nlattr *attr)
{
	struct labels labels;

	labels_begin(&labels, true);
	if (attr)
		labels_text(&labels, "device", nla_data(attr), nla_len(attr));
	return labels_end(&labels);
}

static void labels_attr(struct labels *labels, const char *name, struct nlattr *attr)
{
	if (attr)
		labels_text(labels, name, nla_data(attr), nla_len(attr));
}

static void read_context(struct subject *context, const struct attrs *attrs)
{
	struct nlattr *gid = attrs->by[RDMATENSOR_NL_A_GID];
	struct labels labels;
	char text[64];

	context->device = device_label(attrs->by[RDMATENSOR_NL_A_DEVICE]);
	labels_begin(&labels, false);
	labels_number(&labels, "context", context->id);
	labels_attr(&labels, "worker", attrs->by[RDMATENSOR_NL_A_WORKER]);
	labels_more(&labels, context->device);
	context->labels = labels_end(&labels);

	labels_begin(&labels, true);
	labels_number(&labels, "pid", number(attrs->by[RDMATENSOR_NL_A_PID]));
	labels_attr(&labels, "comm", attrs->by[RDMATENSOR_NL_A_COMM]);
	if (gid && nla_len(gid) >= 16) {
		labels_number(&labels, "port", number(attrs->by[RDMATENSOR_NL_A_PORT]));
		gid_text(nla_data(gid), text, sizeof(text));
		labels_text(&labels, "gid", text, (int)strlen(text));
		labels_number(&labels, "mtu", number(attrs->by[RDMATENSOR_NL_A_MTU]));
	}
	context->info = labels_end(&labels);

	read_sums(context, attrs, KIND_CONTEXT);
	context->gauges[CONTEXT_CHANNELS] = number(attrs->by[RDMATENSOR_NL_A_CHANNELS]);
	context->gauges[CONTEXT_POOLS] = number(attrs->by[RDMATENSOR_NL_A_POOLS]);
}

static void read_domain(struct subject *domain, const struct attrs *attrs)
{
	struct labels labels;

	domain->device = device_label(attrs->by[RDMATENSOR_NL_A_DEVICE]);
	labels_begin(&labels, false);
	labels_number(&labels, "domain", domain->id);
	labels_attr(&labels, "worker", attrs->by[RDMATENSOR_NL_A_WORKER]);
	labels_more(&labels, domain->device);
	domain->labels = labels_end(&labels);

	labels_begin(&labels, true);
	labels_attr(&labels, "mr_mode", attrs->by[RDMATENSOR_NL_A_MR_MODE]);
	domain->info = labels_end(&labels);

	domain->gauges[DOMAIN_CONTEXTS] = number(attrs->by[RDMATENSOR_NL_A_CONTEXTS]);
	domain->gauges[DOMAIN_POOLS] = number(attrs->by[RDMATENSOR_NL_A_POOLS]);
	domain->gauges[DOMAIN_POOL_BYTES] = wide(attrs->by[RDMATENSOR_NL_A_BYTES]);
	domain->gauges[DOMAIN_LASTING] = number(attrs->by[RDMATENSOR_NL_A_LASTING]);
}

/* The device is its context's, which is not in its message. NULL: the context is new since */
static const char *device_of(const struct subjects *contexts, uint32_t id)
{
	size_t low = 0, high = contexts->nr, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (contexts->list[middle].id == id)
			return contexts->list[middle].device;
		if (contexts->list[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void read_channel(struct subject *channel, const struct attrs *attrs, const char *device)
{
	struct nlattr *addr = attrs->by[RDMATENSOR_NL_A_ADDR];
	struct labels labels;
	char text[128];

	labels_begin(&labels, false);
	labels_number(&labels, "context", channel->id);
	labels_attr(&labels, "worker", attrs->by[RDMATENSOR_NL_A_WORKER]);
	labels_more(&labels, device);
	labels_number(&labels, "channel", number(attrs->by[RDMATENSOR_NL_A_CHANNEL]));
	labels_attr(&labels, "peer", attrs->by[RDMATENSOR_NL_A_PEER]);
	channel->labels = labels_end(&labels);

	labels_begin(&labels, true);
	if (addr && nla_len(addr) >= 28) {
		rdmatensor_format_addr(nla_data(addr), text, sizeof(text));
		labels_text(&labels, "address", text, (int)strlen(text));
	}
	labels_attr(&labels, "mr_mode", attrs->by[RDMATENSOR_NL_A_MR_MODE]);
	channel->info = labels_end(&labels);

	read_sums(channel, attrs, KIND_CHANNEL);
	channel->gauges[CHANNEL_UP] =
		number(attrs->by[RDMATENSOR_NL_A_STATE]) == RDMATENSOR_CHANNEL_UP;
	channel->gauges[CHANNEL_REQUESTS] = number(attrs->by[RDMATENSOR_NL_A_REQUESTS]);
	channel->gauges[CHANNEL_RESPONSES] = number(attrs->by[RDMATENSOR_NL_A_RESPONSES]);
	channel->gauges[CHANNEL_SLOTS] = number(attrs->by[RDMATENSOR_NL_A_MSG_SLOTS]);
	/* Both are modulo 2^32 */
	channel->gauges[CHANNEL_UNCONSUMED] = number(attrs->by[RDMATENSOR_NL_A_SENT]) -
					      number(attrs->by[RDMATENSOR_NL_A_CONSUMED]);
}

static void subject_free(struct subject *subject)
{
	free(subject->labels);
	free(subject->info);
	free(subject->device);
}

static uint64_t series_of(const struct subject *subject, enum kind kind)
{
	uint64_t nr = 1;
	int i;

	for (i = 0; i < NR_GAUGES; i++)
		nr += gauge_families[i].kind == kind;
	if (kind == KIND_DOMAIN)
		return nr;
	nr += (uint64_t)__builtin_popcountll(subject->known) + RDMATENSOR_NL_LATENCY_NR + 1;
	for (i = 0; i < RDMATENSOR_NL_ERRORS_NR; i++)
		nr += !!subject->errors[i];
	return nr;
}

static void keep(struct subjects *subjects, const struct subject *subject)
{
	struct subject *more;

	if (subjects->nr == subjects->room) {
		size_t room = subjects->room ? 2 * subjects->room : 16;

		more = realloc(subjects->list, room * sizeof(*more));
		if (!more)
			out_of_memory();
		subjects->list = more;
		subjects->room = room;
	}
	subjects->list[subjects->nr++] = *subject;
}

static void begin(void *arg)
{
	struct reading *reading = arg;
	struct subjects *subjects = &reading->scrape->of[reading->kind];

	while (subjects->nr)
		subject_free(&subjects->list[--subjects->nr]);
	reading->scrape->series = reading->series;
	reading->scrape->left_out = reading->left_out;
}

static void read_message(struct nl_msg *msg, void *arg)
{
	struct reading *reading = arg;
	struct scrape *scrape = reading->scrape;
	struct subject subject = { .id = 0 };
	struct attrs attrs = { .by = { NULL } };
	const char *device;
	uint64_t series;

	/* Without a policy what is too short is skipped, as the other commands do */
	if (genlmsg_parse(nlmsg_hdr(msg), 0, attrs.by, RDMATENSOR_NL_A_MAX, NULL) < 0)
		return;
	subject.id = number(attrs.by[reading->kind == KIND_DOMAIN ? RDMATENSOR_NL_A_DOMAIN :
								 RDMATENSOR_NL_A_CONTEXT]);
	if (reading->kind == KIND_CONTEXT) {
		read_context(&subject, &attrs);
	} else if (reading->kind == KIND_DOMAIN) {
		read_domain(&subject, &attrs);
	} else {
		device = device_of(&scrape->of[KIND_CONTEXT], subject.id);
		/* Without that label they would be other series than from the next scrape on */
		if (!device && !scrape->left_out) {
			scrape->whole = false;
			return;
		}
		read_channel(&subject, &attrs, device ? device : "");
	}
	series = series_of(&subject, reading->kind);
	/* So is what follows one that does not fit: which ones are shown does not swing */
	if (scrape->left_out || series > scrape->most - scrape->series) {
		scrape->left_out += series;
		subject_free(&subject);
		return;
	}
	scrape->series += series;
	keep(&scrape->of[reading->kind], &subject);
}

int scrape_take(struct scrape *scrape, uint64_t most)
{
	static const struct dump_reader reader = { begin, read_message };
	static const int cmds[NR_KINDS] = {
		[KIND_CONTEXT] = RDMATENSOR_NL_CMD_CONTEXT_GET,
		[KIND_DOMAIN] = RDMATENSOR_NL_CMD_DOMAIN_GET,
		[KIND_CHANNEL] = RDMATENSOR_NL_CMD_CHANNEL_GET,
	};
	uint64_t begun = rdmatensor_now_ns();
	struct reading reading;
	enum kind kind;
	struct dump_extent extent;
	int err;

	memset(scrape, 0, sizeof(*scrape));
	scrape->most = most;
	scrape->whole = true;
	for (kind = 0; kind < NR_KINDS; kind++) {
		reading = (struct reading){ scrape, kind, scrape->series, scrape->left_out };
		err = dump_messages(cmds[kind], 0, &reader, &reading, &extent);
		if (err)
			return err;
		scrape->whole &= extent.whole;
		scrape->own |= extent.own;
	}
	scrape->took_ns = rdmatensor_now_ns() - begun;
	return EXIT_OK;
}

void scrape_free(struct scrape *scrape)
{
	enum kind kind;
	size_t i;

	for (kind = 0; kind < NR_KINDS; kind++) {
		for (i = 0; i < scrape->of[kind].nr; i++)
			subject_free(&scrape->of[kind].list[i]);
		free(scrape->of[kind].list);
	}
}
