/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Injected failures, where the kernel's own injection does not reach: what runs
 * in completions, in workers and in handlers of rdma_cm has no task that fail-nth
 * could be set for, and verbs are not allocations.
 *
 * One fault attribute, debugfs' fail_rdmatensor/ (Documentation/fault-injection);
 * each point asks it once.
 *
 * Beside that, points in process context at which a test holds a thread while it does
 * something else, so that an interleaving is a test and not luck: debugfs' file
 * hold_rdmatensor. Writing a point's name holds the next thread that comes there; reading
 * waits until a thread is held; writing an empty line releases it.
 *
 * Kernels without CONFIG_FAULT_INJECTION_DEBUG_FS have neither.
 */
#ifndef RDMATENSOR_FAULT_H
#define RDMATENSOR_FAULT_H

#include <linux/types.h>

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
void rdmatensor_fault_init(void);
void rdmatensor_fault_exit(void);
/* Any context */
bool rdmatensor_should_fail(void);
/* Process context, no spinlock held */
void rdmatensor_hold(const char *point);
#else
static inline void rdmatensor_fault_init(void)
{
}

static inline void rdmatensor_fault_exit(void)
{
}

static inline bool rdmatensor_should_fail(void)
{
	return false;
}

static inline void rdmatensor_hold(const char *point)
{
}
#endif

/* @error if what comes next is to fail, else 0 */
static inline int rdmatensor_fault(int error)
{
	return rdmatensor_should_fail() ? error : 0;
}

#endif /* RDMATENSOR_FAULT_H */
