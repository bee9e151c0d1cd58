/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Opening, starting and connecting a context; errors are printed in words.
 */
#ifndef TOOL_CONTEXT_H
#define TOOL_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmatensor/rdmatensor.h>

#include "context_options.h"

/* The device's file: that of the options, else the usual one */
const char *context_path(const struct context_options *options);
/* Opens only; EXIT_OK, or EXIT_FAILED with a message */
int context_open(const struct context_options *options, struct rdmatensor **out);
/* Opens and starts; EXIT_OK, or EXIT_FAILED with a message */
int context_start(struct context_options *options, struct rdmatensor **out);
/*
 * Connects to a peer, and waits for it as long as --wait says; EXIT_OK, or EXIT_FAILED with a
 * message
 */
int context_connect(struct rdmatensor *rt, const struct context_options *options, const char *peer,
		    const char *worker, uint32_t *channel);
/* As rdmatensor_connect(), with @wait_ns as in struct context_options */
int connect_within(struct rdmatensor *rt, uint64_t wait_ns, const char *peer, const char *worker,
		   uint32_t *channel, char *cause, size_t cause_len);
/* What is left until @end_ns of a wait of @wait_ns; 0 and WAIT_DEFAULT stay as they are */
uint64_t wait_left(uint64_t wait_ns, uint64_t end_ns);
/* --wait as the timeout of an ioctl: 0: the default */
uint32_t wait_ms(uint64_t wait_ns);
/* All counters of the context; EXIT_OK, or EXIT_FAILED with a message */
int context_counters(struct rdmatensor *rt, uint64_t *counters);
/*
 * EXIT_OK: the ring has room for @in_flight operations and the ends of @channels; else
 * EXIT_FAILED with a message
 */
int context_ring_holds(struct rdmatensor *rt, unsigned int in_flight, unsigned int channels);
/*
 * As rdmatensor_wait(), but waits again after -EINTR, which also follows a stop of the
 * process. Signals that end the process are not handled by a wait
 */
int context_wait(struct rdmatensor *rt, unsigned int nr, uint64_t deadline_ns);
/* "10.0.0.1:18521": where a started context listens */
const char *context_listen_text(struct rdmatensor *rt,
				const struct context_options *options, char *text,
				size_t len);
/* "rxe0 port 1 gid 2" */
const char *context_device_text(const struct rdmatensor_query *query,
				char *text, size_t len);

#endif
