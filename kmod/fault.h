/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Injected failures, where the kernel's own injection does not reach: what runs
 * in completions, in workers and in handlers of rdma_cm has no task that fail-nth
 * could be set for, and verbs are not allocations.
 *
 * One fault attribute, debugfs' fail_rdmatensor/ (Documentation/fault-injection);
 * each point asks it once. Kernels without CONFIG_FAULT_INJECTION_DEBUG_FS have
 * nothing of it.
 */
#ifndef RDMATENSOR_FAULT_H
#define RDMATENSOR_FAULT_H

#include <linux/types.h>

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
void rdmatensor_fault_init(void);
void rdmatensor_fault_exit(void);
/* Any context */
bool rdmatensor_should_fail(void);
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
#endif

/* @error if what comes next is to fail, else 0 */
static inline int rdmatensor_fault(int error)
{
	return rdmatensor_should_fail() ? error : 0;
}

#endif /* RDMATENSOR_FAULT_H */
