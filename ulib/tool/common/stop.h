/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM, which a wait ends with.
 */
#ifndef TOOL_STOP_H
#define TOOL_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct rdmatensor;

/* From here on the signals are kept for stop_wait() */
void stop_init(void);
/*
 * Waits until the ring has entries, a signal has come, or the deadline. True:
 * it was a signal, or the device has gone.
 */
bool stop_wait(struct rdmatensor *rt, uint64_t deadline_ns);
/*
 * Waits until there is something to read, a signal has come, or @ms have passed; -1: no
 * end. @fd -1: nothing to read. True: a signal
 */
bool stop_wait_fd(int fd, int ms);
/*
 * Around what may wait for others, as a write into a pipe that nobody reads: between these
 * a signal is not kept, and the write ends with EINTR. One that comes right before the
 * write is kept all the same; the next one ends it
 */
void stop_unblock(void);
void stop_block(void);
/* Whether a signal has come */
bool stop_requested(void);

#endif
