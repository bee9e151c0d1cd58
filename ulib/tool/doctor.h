/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What doctor looks at, one function for each thing. Each says what it has found by
 * doctor_say(), and goes on where something is missing as far as it can.
 */
#ifndef TOOL_DOCTOR_H
#define TOOL_DOCTOR_H

#include "tool.h"

struct json_object;

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

/**
 * struct doctor - one visit
 * @common: options
 * @peer: who to try, or NULL
 * @checks: lines so far as JSON, with --json; else NULL
 * @worst: the worst verdict so far
 * @here_is_well: nothing failed but what a peer is needed for
 * @rt: started context, or NULL
 * @netdev: network device of what it has chosen; empty: none, or not started
 */
struct doctor {
	struct common common;
	const char *peer;
	struct json_object *checks;
	enum verdict worst;
	bool here_is_well;
	struct rdmatensor *rt;
	char netdev[32];
};

/* A line: what was looked at, what it is, and unless it is well, what to do about it */
void doctor_say(struct doctor *doctor, enum verdict verdict, const char *check,
		const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* doctor_host.c: without a context */

/* true: it is loaded */
bool doctor_module(struct doctor *doctor);
/* Opens the device's file */
void doctor_node(struct doctor *doctor);
void doctor_memlock(struct doctor *doctor);
/* RDMA devices with their ports and GIDs. True: there is one to use */
bool doctor_devices(struct doctor *doctor);
/* Network device of a GID; empty: none is known */
void doctor_netdev(const struct rdmatensor_query *query, char *netdev, size_t len);

/* doctor_peer.c: with one */

/* Choice of device, port and GID, path MTU, address that it listens on. False: no START */
bool doctor_start(struct doctor *doctor);
/* A fetch from itself through the RDMA device */
void doctor_itself(struct doctor *doctor);
/* Address, route, channel, a fetch of one kilobyte and one of several packets */
void doctor_try_peer(struct doctor *doctor);

#endif
