/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The module's generic-netlink family, as JSON: what is shown is what was received, in
 * words.
 */
#ifndef TOOL_NL_H
#define TOOL_NL_H

#include <stdbool.h>
#include <stdint.h>

struct json_object;

/*
 * A dump of that command (enum rdmatensor_nl_cmd); @context: of one context, 0: of all.
 * *out: an array, to be put. *whole: false: things came and went all the time that it
 * took, and some may be missing or there twice. EXIT_OK, or EXIT_FAILED with a message
 */
int dump_objects(int cmd, uint32_t context, struct json_object **out, bool *whole);
/* EXIT_OK: there is such a context, or @context is 0; else with a message */
int look_for_context(uint32_t context);
/*
 * Calls @event with each that comes, which it puts, until it returns false or a signal
 * has come. Where more came than the socket holds, it is called with an event "lost" and
 * their number, "events". EXIT_OK, or EXIT_FAILED with a message
 */
int listen_events(bool (*event)(struct json_object *object, void *arg), void *arg);

#endif
