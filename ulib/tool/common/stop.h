/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SIGINT and SIGTERM, which end a wait.
 */
#ifndef TOOL_STOP_H
#define TOOL_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct rdmatensor;

/*
 * From here on the signals are delivered in the calls below only. The first one asks the
 * command to end; a second one, or STOP_SECONDS in which it has not ended, ends the process
 */
#define STOP_SECONDS 30
void stop_init(void);
/* The command has ended well, whatever time the rest takes */
void stop_end(void);
/*
 * Waits until the ring has entries, a signal arrives, or the deadline passes. True: it was a
 * signal, or the device is gone
 */
bool stop_wait(struct rdmatensor *rt, uint64_t deadline_ns);
/*
 * Waits until @fd is readable, a signal arrives, or @ms have passed; @ms -1: without a bound,
 * @fd -1: for no file. True: a signal
 */
bool stop_wait_fd(int fd, int ms);
/*
 * Around calls that may block, such as a write into a full pipe: in between a signal is
 * delivered at once, and the call ends with EINTR. A signal right before the call does not
 * interrupt it
 */
void stop_unblock(void);
void stop_block(void);
/* True: a signal has arrived. False before stop_init() */
bool stop_requested(void);

#endif
