// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * All series of a family follow each other, below its head. OpenMetrics names a counter's family
 * without _total and has units; the other format has neither, and no type for what is known of a
 * thing (info): it is a gauge of 1 there, as usual.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#include "buffer.h"
#include "exposition.h"
#include "scrape.h"

#define PREFIX "rdmatensor_"

/**
 * struct exposition - text on its way
 * @to: where to
 * @format: which one
 * @scrape: what it is about
 */
struct exposition {
	struct buffer *to;
	enum format format;
	const struct scrape *scrape;
};

/* @name: of the samples; @suffix: at its end, and not part of OpenMetrics' name of the family */
static void put_head(const struct exposition *exp, const char *name, const char *suffix,
		     const char *type, const char *unit, const char *help)
{
	bool open = exp->format == FORMAT_OPENMETRICS;
	int len = (int)(strlen(name) - (open ? strlen(suffix) : 0));

	buffer_format(exp->to, "# HELP %.*s %s\n", len, name, help);
	buffer_format(exp->to, "# TYPE %.*s %s\n", len, name, type);
	if (open && unit)
		buffer_format(exp->to, "# UNIT %.*s %s\n", len, name, unit);
}

static void put_info_head(const struct exposition *exp, const char *name, const char *help)
{
	put_head(exp, name, "_info", exp->format == FORMAT_OPENMETRICS ? "info" : "gauge", NULL,
		 help);
}

/* Thousands of them, for which a format would take most of the time */
static void put_sample(struct buffer *to, const char *name, const char *labels, uint64_t value)
{
	buffer_string(to, name);
	buffer_put(to, "{", 1);
	buffer_string(to, labels);
	buffer_put(to, "} ", 2);
	buffer_number(to, value);
	buffer_put(to, "\n", 1);
}

static void put_counters(const struct exposition *exp, enum kind kind)
{
	const struct subjects *of = &exp->scrape->of[kind];
	uint64_t which = counters_of(kind);
	char name[128];
	size_t i;
	int stat;

	for (stat = 0; stat < RDMATENSOR_STAT_NR; stat++) {
		if (!(which & UINT64_C(1) << stat))
			continue;
		snprintf(name, sizeof(name), PREFIX "%s_%s_total", kind_names[kind],
			 rdmatensor_stat_name(stat));
		put_head(exp, name, "_total", "counter", counter_unit(stat),
			 counter_families[stat].help);
		for (i = 0; i < of->nr; i++)
			if (of->list[i].known & UINT64_C(1) << stat)
				put_sample(exp->to, name, of->list[i].labels,
					   of->list[i].counters[stat]);
	}
}

static void put_errors(const struct exposition *exp, enum kind kind)
{
	const struct subjects *of = &exp->scrape->of[kind];
	const char *word;
	char name[128];
	size_t i;
	int err;

	snprintf(name, sizeof(name), PREFIX "%s_fetch_failures_total", kind_names[kind]);
	put_head(exp, name, "_total", "counter", NULL,
		 "Fetches that ended with an error, by that error.");
	for (i = 0; i < of->nr; i++)
		for (err = 0; err < RDMATENSOR_NL_ERRORS_NR; err++) {
			if (!of->list[i].errors[err])
				continue;
			word = err ? strerrorname_np(err) : "other";
			buffer_format(exp->to, "%s{%s,errno=\"%s\"} %" PRIu64 "\n", name,
				      of->list[i].labels, word ? word : "unknown",
				      of->list[i].errors[err]);
		}
}

/* The label of the buckets, with a comma in front: each has what took less than that */
static void bucket_label(int i, char *text, size_t len)
{
	if (i == RDMATENSOR_NL_LATENCY_NR - 1)
		snprintf(text, len, ",le=\"+Inf\"} ");
	else
		snprintf(text, len, ",le=\"%.10g\"} ", (double)(UINT64_C(1) << i) / 1e6);
}

/*
 * The module has no sum of these times. In OpenMetrics a count goes with a sum only; readers of
 * the older format take a count that is missing for 0
 */
static void put_latency(const struct exposition *exp, enum kind kind)
{
	const struct subjects *of = &exp->scrape->of[kind];
	char bounds[RDMATENSOR_NL_LATENCY_NR][32], name[128], count[160];
	uint64_t sum;
	size_t k;
	int i;

	snprintf(name, sizeof(name), PREFIX "%s_fetch_latency_seconds", kind_names[kind]);
	snprintf(count, sizeof(count), "%s_count", name);
	put_head(exp, name, "", "histogram", "seconds",
		 "Time from SUBMIT to the end of fetches that ended with their tensor.");
	for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++)
		bucket_label(i, bounds[i], sizeof(bounds[i]));
	for (k = 0; k < of->nr; k++) {
		sum = 0;
		for (i = 0; i < RDMATENSOR_NL_LATENCY_NR; i++) {
			sum += of->list[k].latency[i];
			buffer_string(exp->to, name);
			buffer_string(exp->to, "_bucket{");
			buffer_string(exp->to, of->list[k].labels);
			buffer_string(exp->to, bounds[i]);
			buffer_number(exp->to, sum);
			buffer_put(exp->to, "\n", 1);
		}
		if (exp->format == FORMAT_PROMETHEUS)
			put_sample(exp->to, count, of->list[k].labels, sum);
	}
}

static void put_gauges(const struct exposition *exp, enum kind kind)
{
	const struct subjects *of = &exp->scrape->of[kind];
	const struct gauge_family *family;
	char name[128];
	size_t i;
	int gauge;

	for (gauge = 0; gauge < NR_GAUGES; gauge++) {
		family = &gauge_families[gauge];
		if (family->kind != kind)
			continue;
		snprintf(name, sizeof(name), PREFIX "%s_%s", kind_names[kind], family->name);
		put_head(exp, name, "", "gauge", family->unit, family->help);
		for (i = 0; i < of->nr; i++)
			put_sample(exp->to, name, of->list[i].labels, of->list[i].gauges[gauge]);
	}
}

/* Labels that are the same for as long as it lives, so that the others need not have them */
static void put_info(const struct exposition *exp, enum kind kind)
{
	const struct subjects *of = &exp->scrape->of[kind];
	char name[128];
	size_t i;

	snprintf(name, sizeof(name), PREFIX "%s_info", kind_names[kind]);
	put_info_head(exp, name, kind == KIND_CONTEXT ?
		      "Who opened the context, and what it is bound to." :
		      kind == KIND_DOMAIN ? "What peers of the domain's contexts can write to." :
		      "The peer's address, and what it can write to here.");
	for (i = 0; i < of->nr; i++)
		buffer_format(exp->to, "%s{%s%s} 1\n", name, of->list[i].labels,
			      of->list[i].info);
}

/* What is to be known of the text itself */
static void put_scrape(const struct exposition *exp)
{
	const struct scrape *scrape = exp->scrape;

	put_info_head(exp, PREFIX "tool_info", "The tool that asked the module.");
	buffer_format(exp->to, PREFIX "tool_info{version=\"%s\",abi=\"%d\"} 1\n",
		      rdmatensor_version(), RDMATENSOR_ABI_VERSION);
	put_head(exp, PREFIX "scrape_duration_seconds", "", "gauge", "seconds",
		 "Time that it took to ask the module.");
	buffer_format(exp->to, PREFIX "scrape_duration_seconds %" PRIu64 ".%09" PRIu64 "\n",
		      scrape->took_ns / 1000000000, scrape->took_ns % 1000000000);
	put_head(exp, PREFIX "scrape_incomplete", "", "gauge", NULL,
		 "1: objects came and went meanwhile, some may be missing or listed twice.");
	buffer_format(exp->to, PREFIX "scrape_incomplete %d\n", !scrape->whole);
	put_head(exp, PREFIX "scrape_own_only", "", "gauge", NULL,
		 "1: of the user's own contexts and domains alone, for want of CAP_NET_ADMIN.");
	buffer_format(exp->to, PREFIX "scrape_own_only %d\n", scrape->own);
	put_head(exp, PREFIX "scrape_series", "", "gauge", NULL,
		 "Series of contexts, domains and channels in this text.");
	buffer_format(exp->to, PREFIX "scrape_series %" PRIu64 "\n", scrape->series);
	put_head(exp, PREFIX "scrape_series_left_out", "", "gauge", NULL,
		 "Series beyond --max-series, which are not in this text.");
	buffer_format(exp->to, PREFIX "scrape_series_left_out %" PRIu64 "\n", scrape->left_out);
}

static void put_all(const struct exposition *exp)
{
	enum kind kind;

	put_scrape(exp);
	for (kind = 0; kind < NR_KINDS; kind++) {
		put_info(exp, kind);
		put_gauges(exp, kind);
		if (kind == KIND_DOMAIN)
			continue;
		put_counters(exp, kind);
		put_errors(exp, kind);
		put_latency(exp, kind);
	}
	if (exp->format == FORMAT_OPENMETRICS)
		buffer_string(exp->to, "# EOF\n");
}

int exposition_make(uint64_t most, enum format format, char **text, size_t *bytes)
{
	struct scrape scrape;
	struct buffer buffer = { .text = NULL };
	const struct exposition exp = { .to = &buffer, .format = format, .scrape = &scrape };
	int err;

	err = scrape_take(&scrape, most);
	if (!err)
		put_all(&exp);
	scrape_free(&scrape);
	*text = buffer.text;
	*bytes = buffer.bytes;
	return err;
}

const char *exposition_media_type(enum format format)
{
	return format == FORMAT_OPENMETRICS ?
	       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
	       "text/plain; version=0.0.4; charset=utf-8";
}
