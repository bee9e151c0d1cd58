/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A scrape as text that monitors read, in one of two formats that differ in their heads: the
 * Prometheus text format 0.0.4 and OpenMetrics 1.0.0.
 */
#ifndef TOOL_METRICS_EXPOSITION_H
#define TOOL_METRICS_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

enum format { FORMAT_PROMETHEUS, FORMAT_OPENMETRICS };

/*
 * Asks the module, and writes at most @most series of contexts, domains and channels. *text: of
 * *bytes, which the caller frees. EXIT_OK, or EXIT_FAILED with a message
 */
int exposition_make(uint64_t most, enum format format, char **text, size_t *bytes);
/* Its media type, for HTTP */
const char *exposition_media_type(enum format format);

#endif
