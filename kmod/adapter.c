// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter: the choice of device, port and GID, and the notice of removal.
 *
 * The RDMA core tells this client of each device. A context's adapter is in its
 * device's list from bind until unbind, or until the device is removed: then
 * gone() is called, once, and the removal goes on when no adapter is left. The
 * core keeps a device alive until the removal has returned, so a bound adapter
 * needs no reference to it.
 *
 * adapter_lock guards the list of devices and theirs of adapters. It is not held
 * while gone() runs, which may sleep for as long as queue pairs take to end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "adapter.h"

/**
 * struct rdmatensor_device - an RDMA device of this host
 * @ibdev: it
 * @entry: in the list of devices
 * @adapters: bound to it
 */
struct rdmatensor_device {
	struct ib_device *ibdev;
	struct list_head entry;
	struct list_head adapters;
};

static DEFINE_MUTEX(adapter_lock);
static LIST_HEAD(adapter_devices);

static int adapter_add_device(struct ib_device *ibdev)
{
	struct rdmatensor_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return -ENOMEM;
	device->ibdev = ibdev;
	INIT_LIST_HEAD(&device->adapters);
	mutex_lock(&adapter_lock);
	list_add_tail(&device->entry, &adapter_devices);
	mutex_unlock(&adapter_lock);
	return 0;
}

static void adapter_remove_device(struct ib_device *ibdev, void *data)
{
	struct rdmatensor_device *device = NULL, *each;
	struct rdmatensor_adapter *adapter;

	mutex_lock(&adapter_lock);
	list_for_each_entry(each, &adapter_devices, entry)
		if (each->ibdev == ibdev)
			device = each;
	if (!device) {
		mutex_unlock(&adapter_lock);
		return;
	}

	list_del(&device->entry);
	while ((adapter = list_first_entry_or_null(&device->adapters,
						   struct rdmatensor_adapter, entry))) {
		list_del_init(&adapter->entry);
		adapter->device = NULL;
		mutex_unlock(&adapter_lock);
		adapter->gone(adapter);
		/* Whoever unbinds waits for this, so the adapter is there until here */
		complete(&adapter->gone_done);
		mutex_lock(&adapter_lock);
	}
	mutex_unlock(&adapter_lock);
	kfree(device);
}

static struct ib_client adapter_client = {
	.name = "rdmatensor",
	.add = adapter_add_device,
	.remove = adapter_remove_device,
};

int rdmatensor_adapter_register(void)
{
	return ib_register_client(&adapter_client);
}

void rdmatensor_adapter_unregister(void)
{
	ib_unregister_client(&adapter_client);
}

/* Why a device is no candidate; NULL: it is one */
static const char *adapter_unfit(struct ib_device *ibdev)
{
	if (!(ibdev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "no fast registration";
	if (rdma_protocol_iwarp(ibdev, rdma_start_port(ibdev)))
		return "iWARP has no write with immediate";
	return NULL;
}

static bool adapter_port_active(struct ib_device *ibdev, u32 port)
{
	struct ib_port_attr attr;

	return !ib_query_port(ibdev, port, &attr) && attr.state == IB_PORT_ACTIVE;
}

/* The wanted port, or the first active one; 0: none */
static u32 adapter_active_port(struct ib_device *ibdev, u32 wanted)
{
	u32 port;

	rdma_for_each_port(ibdev, port)
		if ((!wanted || port == wanted) && adapter_port_active(ibdev, port))
			return port;
	return 0;
}

/* What there is, for people: "rxe0/1 ACTIVE, mlx5_0/1 DOWN" */
static void adapter_list(char *text, size_t room)
{
	struct rdmatensor_device *device;
	size_t used = 0;
	u32 port;

	text[0] = '\0';
	list_for_each_entry(device, &adapter_devices, entry) {
		const char *unfit = adapter_unfit(device->ibdev);

		if (!rdma_dev_access_netns(device->ibdev, current->nsproxy->net_ns))
			continue;
		rdma_for_each_port(device->ibdev, port)
			used += scnprintf(text + used, room - used, "%s%s/%u %s",
					  used ? ", " : "", device->ibdev->name, port,
					  unfit ?:
					  adapter_port_active(device->ibdev, port) ?
					  "ACTIVE" : "DOWN");
	}
	if (!used)
		scnprintf(text, room, "none");
}

static struct rdmatensor_device *
adapter_choose_device(const struct rdmatensor_adapter_choice *choice, int *error,
		      char *cause, size_t room)
{
	struct rdmatensor_device *device, *found = NULL;
	bool named = choice->device_name[0];
	char list[160];
	int n = 0;

	list_for_each_entry(device, &adapter_devices, entry) {
		if (!rdma_dev_access_netns(device->ibdev, current->nsproxy->net_ns))
			continue;
		if (named && strcmp(device->ibdev->name, choice->device_name))
			continue;
		if (!named && (adapter_unfit(device->ibdev) ||
			       !adapter_active_port(device->ibdev, 0)))
			continue;
		found = device;
		n++;
	}
	if (n == 1)
		return found;

	adapter_list(list, sizeof(list));
	*error = n ? -ENOTUNIQ : -ENODEV;
	if (n)
		snprintf(cause, room, "START: several RDMA devices are active, name one: %s",
			 list);
	else if (named)
		snprintf(cause, room, "START: no RDMA device '%s'; there are: %s",
			 choice->device_name, list);
	else
		snprintf(cause, room,
			 "START: no RDMA device with an active port (%s); see 'rdma link', or make one: rdma link add rxe0 type rxe netdev DEV",
			 list);
	return NULL;
}

static bool adapter_gid_global(const union ib_gid *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;

	return ipv6_addr_v4mapped(addr) || !(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL);
}

/* By the rule in the header. Return: a held attribute, NULL: none will do */
static const struct ib_gid_attr *adapter_choose_gid(struct ib_device *ibdev, u32 port,
						    int length)
{
	const struct ib_gid_attr *attr, *best = NULL;
	int i;

	for (i = 0; i < length; i++) {
		/* The table may be sparse: an empty place is no end */
		attr = rdma_get_gid_attr(ibdev, port, i);
		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    (!best || (!adapter_gid_global(&best->gid) &&
			       adapter_gid_global(&attr->gid)))) {
			if (best)
				rdma_put_gid_attr(best);
			best = attr;
		} else {
			rdma_put_gid_attr(attr);
		}
	}
	return best;
}

static void adapter_set_addr(struct rdmatensor_adapter *adapter,
			     const struct ib_gid_attr *attr)
{
	struct net_device *ndev;

	rdma_gid2ip((struct sockaddr *)&adapter->addr, &attr->gid);
	adapter->has_addr = true;
	if (adapter_gid_global(&attr->gid))
		return;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev))
		((struct sockaddr_in6 *)&adapter->addr)->sin6_scope_id = ndev->ifindex;
	rcu_read_unlock();
}

static int adapter_bind_gid(struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_adapter_choice *choice,
			    const struct ib_port_attr *port, char *cause, size_t room)
{
	const struct ib_gid_attr *attr;

	if (choice->has_gid_index && choice->gid_index >= port->gid_tbl_len) {
		snprintf(cause, room, "START: gid_index %u is out of range: 0..%d on %s/%u",
			 choice->gid_index, port->gid_tbl_len - 1, adapter->ibdev->name,
			 adapter->port);
		return -EINVAL;
	}

	if (choice->has_gid_index || !adapter->roce) {
		attr = rdma_get_gid_attr(adapter->ibdev, adapter->port,
					 choice->has_gid_index ? choice->gid_index : 0);
		if (IS_ERR(attr)) {
			snprintf(cause, room, "START: gid_index %u of %s/%u is empty",
				 choice->gid_index, adapter->ibdev->name, adapter->port);
			return -EADDRNOTAVAIL;
		}
	} else {
		attr = adapter_choose_gid(adapter->ibdev, adapter->port, port->gid_tbl_len);
		if (!attr) {
			snprintf(cause, room,
				 "START: %s/%u has no RoCE v2 GID; give its network device an IP address",
				 adapter->ibdev->name, adapter->port);
			return -EADDRNOTAVAIL;
		}
	}
	if (adapter->roce && attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP) {
		snprintf(cause, room, "START: gid_index %u of %s/%u is not RoCE v2",
			 attr->index, adapter->ibdev->name, adapter->port);
		rdma_put_gid_attr(attr);
		return -EADDRNOTAVAIL;
	}

	adapter->gid = attr->gid;
	adapter->gid_index = attr->index;
	if (adapter->roce)
		adapter_set_addr(adapter, attr);
	rdma_put_gid_attr(attr);
	return 0;
}

static int adapter_bind_port(struct rdmatensor_adapter *adapter,
			     const struct rdmatensor_adapter_choice *choice,
			     char *cause, size_t room)
{
	struct ib_device *ibdev = adapter->ibdev;
	struct ib_port_attr port;
	u32 most;
	int ret;

	if (choice->port && !rdma_is_port_valid(ibdev, choice->port)) {
		snprintf(cause, room, "START: port %u is out of range: %s has 1..%u",
			 choice->port, ibdev->name, ibdev->phys_port_cnt);
		return -EINVAL;
	}
	adapter->port = adapter_active_port(ibdev, choice->port);
	if (!adapter->port) {
		snprintf(cause, room,
			 "START: %s has no active port%s; set its network device up, see 'rdma link'",
			 ibdev->name, choice->port ? " of that number" : "");
		return -ENODEV;
	}
	ret = ib_query_port(ibdev, adapter->port, &port);
	if (ret)
		return ret;

	adapter->roce = rdma_protocol_roce(ibdev, adapter->port);
	ret = ib_query_pkey(ibdev, adapter->port, choice->pkey_index, &adapter->pkey);
	if (ret) {
		snprintf(cause, room, "START: pkey_index %u is out of range: 0..%d on %s/%u",
			 choice->pkey_index, port.pkey_tbl_len - 1, ibdev->name,
			 adapter->port);
		return -EINVAL;
	}

	adapter->mtu = port.active_mtu;
	if (choice->mtu) {
		enum ib_mtu mtu = ib_mtu_int_to_enum(choice->mtu);

		if (ib_mtu_enum_to_int(mtu) != choice->mtu || mtu > port.active_mtu) {
			snprintf(cause, room,
				 "START: mtu %u is none of 256, 512, 1024, 2048, 4096 up to %d, the active MTU of %s/%u",
				 choice->mtu, ib_mtu_enum_to_int(port.active_mtu), ibdev->name,
				 adapter->port);
			return -EINVAL;
		}
		adapter->mtu = mtu;
	}

	/* A chunk of 1 GiB is what a segment's u32 lengths, and a page array, take */
	most = min_t(u32, ibdev->attrs.max_fast_reg_page_list_len, SZ_1G >> PAGE_SHIFT);
	adapter->seg_shift = ilog2(most) + PAGE_SHIFT;
	return adapter_bind_gid(adapter, choice, &port, cause, room);
}

int rdmatensor_adapter_bind(struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_adapter_choice *choice,
			    void (*gone)(struct rdmatensor_adapter *adapter),
			    char *cause, size_t room)
{
	struct rdmatensor_device *device;
	const char *unfit;
	int ret = 0;

	memset(adapter, 0, sizeof(*adapter));
	INIT_LIST_HEAD(&adapter->entry);
	init_completion(&adapter->gone_done);
	adapter->gone = gone;

	mutex_lock(&adapter_lock);
	device = adapter_choose_device(choice, &ret, cause, room);
	if (!device)
		goto out_unlock;

	unfit = adapter_unfit(device->ibdev);
	if (unfit) {
		snprintf(cause, room, "START: device %s cannot be used: %s",
			 device->ibdev->name, unfit);
		ret = -ENODEV;
		goto out_unlock;
	}

	adapter->ibdev = device->ibdev;
	ret = adapter_bind_port(adapter, choice, cause, room);
	if (ret)
		goto out_unlock;

	adapter->device = device;
	list_add_tail(&adapter->entry, &device->adapters);
	snprintf(cause, room, "device %s (%s), port %u, GID %u %pI6c (%s), MTU %d",
		 device->ibdev->name,
		 choice->device_name[0] ? "as named" : "the only active one", adapter->port,
		 adapter->gid_index, adapter->gid.raw,
		 choice->has_gid_index ? "as named" : !adapter->roce ? "InfiniBand" :
		 adapter_gid_global(&adapter->gid) ? "first RoCE v2 with a global address" :
		 "RoCE v2, link-local for want of a better",
		 ib_mtu_enum_to_int(adapter->mtu));
out_unlock:
	mutex_unlock(&adapter_lock);
	return ret;
}

void rdmatensor_adapter_unbind(struct rdmatensor_adapter *adapter)
{
	bool gone;

	mutex_lock(&adapter_lock);
	gone = !adapter->device;
	if (!gone) {
		list_del_init(&adapter->entry);
		adapter->device = NULL;
	}
	mutex_unlock(&adapter_lock);
	if (gone)
		wait_for_completion(&adapter->gone_done);
}
