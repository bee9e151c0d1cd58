/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The module's generic-netlink family: dumps and events as JSON, with words for numbers.
 */
#ifndef TOOL_NL_H
#define TOOL_NL_H

#include <stdbool.h>
#include <stdint.h>

#include "dump_reader.h"

struct json_object;

/*
 * A dump by @cmd (enum rdmatensor_nl_cmd) of one context; @context 0: of all. EXIT_OK, or
 * EXIT_FAILED with a message
 */
int dump_messages(int cmd, uint32_t context, const struct dump_reader *reader, void *arg,
		  struct dump_extent *extent);
/* The same as JSON. *out: an array, which the caller puts */
int dump_objects(int cmd, uint32_t context, struct json_object **out, struct dump_extent *extent);
/* EXIT_OK: there is such a context, or @context is 0; else with a message */
int look_for_context(uint32_t context);
/*
 * Calls @event with each event that arrives, until it returns false or a signal arrives;
 * @event puts the object. If more events arrive than the socket holds, @event is called with
 * an event "lost" and their number, "events". EXIT_OK, or EXIT_FAILED with a message
 */
int listen_events(bool (*event)(struct json_object *object, void *arg), void *arg);

#endif
