// SPDX-License-Identifier: GPL-2.0
/*
 * rdmatensor: tensors by name, between machines, over RDMA.
 *
 * Load and unload. Everything else belongs to a context, which is an open file,
 * and an open file holds the module; so at unload there is nothing left but
 * what a timer or an RCU callback may still be returning from.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include "api/netlink.h"
#include "api/uapi.h"
#include "context/context_list.h"
#include "core/fault.h"
#include "memory/adapter.h"
#include "memory/pool.h"

static struct miscdevice rdmatensor_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rdmatensor",
	.fops = &rdmatensor_fops,
	.mode = 0660,
};

static int __init rdmatensor_init(void)
{
	int ret;

	rdmatensor_fault_init();
	ret = rdmatensor_context_list_init();
	if (ret)
		goto out_fault_exit;
	ret = rdmatensor_pool_init();
	if (ret)
		goto out_context_list_exit;
	ret = rdmatensor_adapter_register();
	if (ret)
		goto out_pool_exit;
	ret = rdmatensor_netlink_register();
	if (ret)
		goto out_unregister_adapter;
	ret = misc_register(&rdmatensor_misc);
	if (ret)
		goto out_unregister_netlink;
	return 0;

out_unregister_netlink:
	rdmatensor_netlink_unregister();
out_unregister_adapter:
	rdmatensor_adapter_unregister();
out_pool_exit:
	rdmatensor_pool_exit();
out_context_list_exit:
	rdmatensor_context_list_exit();
out_fault_exit:
	rdmatensor_fault_exit();
	return ret;
}

static void __exit rdmatensor_exit(void)
{
	misc_deregister(&rdmatensor_misc);
	rdmatensor_netlink_unregister();
	rdmatensor_adapter_unregister();
	rdmatensor_pool_exit();
	rdmatensor_context_list_exit();
	/* Timer handlers, which run with softirqs off, have returned; so have RCU's */
	synchronize_rcu();
	rcu_barrier();
	rdmatensor_fault_exit();
}

module_init(rdmatensor_init);
module_exit(rdmatensor_exit);

MODULE_DESCRIPTION("Tensors by name, between machines, over RDMA");
MODULE_AUTHOR("rdmatensor developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
