// SPDX-License-Identifier: GPL-2.0
/*
 * Injected failures. The attribute and its directory live as long as the module.
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fault-inject.h>
#include "fault.h"

static DECLARE_FAULT_ATTR(fault_attr);
static struct dentry *fault_dir;

void rdmatensor_fault_init(void)
{
	/* A test asks for failures one by one, and knows that it did */
	fault_attr.verbose = 0;
	fault_dir = fault_create_debugfs_attr("fail_rdmatensor", NULL, &fault_attr);
}

void rdmatensor_fault_exit(void)
{
	if (!IS_ERR(fault_dir))
		debugfs_remove_recursive(fault_dir);
}

bool rdmatensor_should_fail(void)
{
	return should_fail(&fault_attr, 1);
}
