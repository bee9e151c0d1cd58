/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor's checks share: the visit, and the lines that report what they find. A check
 * goes on as far as it can where something is missing.
 */
#ifndef TOOL_DOCTOR_SAY_H
#define TOOL_DOCTOR_SAY_H

#include <stdbool.h>

#include <rdmatensor/rdmatensor.h>

#include "tool/common/context_options.h"

struct json_object;

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

/**
 * struct doctor - one visit
 * @options: options
 * @peer: the peer to try, or NULL
 * @checks: lines so far as JSON, with --json; else NULL
 * @worst: the worst verdict so far
 * @here_is_well: nothing failed but what a peer is needed for
 * @rt: started context, or NULL
 * @netdev: network device of what it has chosen; empty: none, or not started
 */
struct doctor {
	struct context_options options;
	const char *peer;
	struct json_object *checks;
	enum verdict worst;
	bool here_is_well;
	struct rdmatensor *rt;
	char netdev[32];
};

/* A line: the check, its result, and unless that is OK, a remedy */
void doctor_say(struct doctor *doctor, enum verdict verdict, const char *check,
		const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* The last line, or all lines as JSON. EXIT_OK: all are OK; else EXIT_FAILED */
int doctor_report(struct doctor *doctor);

#endif
