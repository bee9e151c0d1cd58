/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Metrics for those that ask over HTTP.
 */
#ifndef TOOL_METRICS_LISTEN_H
#define TOOL_METRICS_LISTEN_H

#include <stdint.h>

/*
 * Answers GET /metrics at @address, which is as --listen says, with at most @most series, until a
 * signal arrives. EXIT_OK, or EXIT_FAILED or EXIT_USAGE with a message
 */
int metrics_listen(const char *address, uint64_t most);

#endif
