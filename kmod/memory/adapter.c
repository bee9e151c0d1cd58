// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter: the choice of device, port and GID, and the notice of removal.
 *
 * The RDMA core reports every device to this client, and removes a device only
 * after this client's remove function has returned, which does not happen before
 * no adapter is bound to it. So a bound adapter needs no reference to its
 * device, and whatever its owner builds on the device is safe until gone().
 *
 * An adapter is its owner's. From bind on it is in its device's list, until
 * unbind or the removal takes it out, whichever is first. The other of the two
 * then does nothing, but unbind waits until gone() has returned.
 *
 * Locking: adapter_lock guards the list of devices and each one's list of
 * adapters. It is not held while gone() runs: gone() takes its owner's locks,
 * under which others bind, and lasts as long as queue pairs take to end.
 *
 * Errors of the choice change nothing; each has a line for the user, with what
 * there is to choose from where that helps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include "memory/adapter.h"

/* A queue pair names its GID in eight bits */
#define ADAPTER_GID_INDEX_MAX 255
/*
 * 16 MiB. Writes are long enough then to hide what a key costs. Of a greater
 * length the list of pages, which drivers want contiguous, cannot be allocated
 * once memory is fragmented.
 */
#define ADAPTER_SEG_SHIFT_MAX 24
/*
 * irdma lists more pages than these in two levels if it finds no place for them in a row, and then
 * has the device take the list of lists for the pages
 */
#define ADAPTER_LIST_LEN_IRDMA 512U
/* 1 GiB, of longer pages: 512 of 2 MiB */
#define ADAPTER_LONG_SEG_SHIFT_MAX 30
/* 16 MiB on soft-RoCE: it lists the CPU's pages all the same, with 16 bytes for each */
#define ADAPTER_LONG_SEG_SHIFT_RXE 24

/**
 * struct rdmatensor_device - an RDMA device of this host
 * @ibdev: the device
 * @entry: in adapter_devices, until it is being removed
 * @adapters: what is bound to it
 * @last: and what is told of a removal after these
 */
struct rdmatensor_device {
	struct ib_device *ibdev;
	struct list_head entry;
	struct list_head adapters;
	struct list_head last;
};

/**
 * struct adapter_want - GIDs that are meant by a name that is no RDMA device's
 * @ifindex: those of this network device; 0: any
 * @by_addr: @gid is meant
 * @gid: this one
 */
struct adapter_want {
	int ifindex;
	bool by_addr;
	union ib_gid gid;
};

/**
 * struct adapter_bind - one call of bind
 * @choice: what is asked for
 * @net: whose devices and addresses count
 * @want: what the device's name says of GIDs
 * @port: where one of those was found, or 0
 * @text: line for the user
 * @room: bytes of it
 * @len: bytes used, without the terminating zero
 */
struct adapter_bind {
	const struct rdmatensor_adapter_choice *choice;
	const struct net *net;
	struct adapter_want want;
	u32 port;
	char *text;
	size_t room;
	size_t len;
};

static DEFINE_MUTEX(adapter_lock);
static LIST_HEAD(adapter_devices);

static int adapter_add_device(struct ib_device *ibdev);
static void adapter_remove_device(struct ib_device *ibdev, void *client_data);

static struct ib_client adapter_client = {
	.name = KBUILD_MODNAME,
	.add = adapter_add_device,
	.remove = adapter_remove_device,
};

static int adapter_add_device(struct ib_device *ibdev)
{
	struct rdmatensor_device *device;

	device = kzalloc(sizeof(*device), GFP_KERNEL);
	if (!device)
		return -ENOMEM;
	device->ibdev = ibdev;
	INIT_LIST_HEAD(&device->adapters);
	INIT_LIST_HEAD(&device->last);
	ib_set_client_data(ibdev, &adapter_client, device);

	mutex_lock(&adapter_lock);
	list_add_tail(&device->entry, &adapter_devices);
	mutex_unlock(&adapter_lock);
	return 0;
}

/* Which one is to be told of the removal next; NULL: all have been */
static struct rdmatensor_adapter *adapter_next_gone(struct rdmatensor_device *device)
{
	struct list_head *list = list_empty(&device->adapters) ? &device->last :
			   &device->adapters;

	return list_first_entry_or_null(list, struct rdmatensor_adapter, entry);
}

static void adapter_remove_device(struct ib_device *ibdev, void *client_data)
{
	struct rdmatensor_device *device = client_data;
	struct rdmatensor_adapter *adapter;

	mutex_lock(&adapter_lock);
	/* No adapter binds to it from here on */
	list_del_init(&device->entry);
	while ((adapter = adapter_next_gone(device))) {
		list_del_init(&adapter->entry);
		mutex_unlock(&adapter_lock);

		adapter->gone(adapter);

		mutex_lock(&adapter_lock);
		adapter->ibdev = NULL;
		adapter->device = NULL;
		/* The owner may free the adapter from here on */
		complete_all(&adapter->gone_done);
	}
	mutex_unlock(&adapter_lock);
	kfree(device);
}

int rdmatensor_adapter_register(void)
{
	return ib_register_client(&adapter_client);
}

void rdmatensor_adapter_unregister(void)
{
	ib_unregister_client(&adapter_client);
}

/* Adds to the line for the user. What does not fit is cut, visibly */
static __printf(2, 3) void adapter_say(struct adapter_bind *bind, const char *fmt, ...)
{
	size_t left = bind->room - bind->len;
	va_list args;
	size_t len;

	if (!left)
		return;
	va_start(args, fmt);
	len = vsnprintf(bind->text + bind->len, left, fmt, args);
	va_end(args);
	if (len < left) {
		bind->len += len;
		return;
	}
	bind->len = bind->room - 1;
	if (bind->room > 3)
		memcpy(bind->text + bind->room - 4, "...", 4);
}

static const char *adapter_transport(struct ib_device *ibdev, u32 port)
{
	if (rdma_protocol_roce(ibdev, port))
		return "RoCE";
	if (rdma_protocol_ib(ibdev, port))
		return "InfiniBand";
	if (rdma_protocol_iwarp(ibdev, port))
		return "iWARP";
	return "other";
}

bool rdmatensor_adapter_has_pages(const struct ib_device *ibdev)
{
	u64 sizes = ibdev->attrs.page_size_cap;

	/* Some say nothing, and take all */
	return !sizes || sizes & PAGE_SIZE;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_adapter_has_pages);

/* What keeps a port from being used, whatever its state; NULL: nothing */
const char *rdmatensor_adapter_unfit(struct ib_device *ibdev, u32 port)
{
	if (!(ibdev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "no fast registration";
	if (!rdmatensor_adapter_has_pages(ibdev))
		return "no registration of pages of this kernel's length";
	/* rdmavt's: local accesses there go by the pages' own addresses, peers' by the region's */
	if (ibdev->ops.driver_id == RDMA_DRIVER_HFI1 || ibdev->ops.driver_id == RDMA_DRIVER_QIB)
		return "no registration for addresses that are chosen";
	if (rdma_protocol_iwarp(ibdev, port))
		return "no write with immediate";
	if (!rdma_ib_or_roce(ibdev, port))
		return "no reliable connections";
	return NULL;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_adapter_unfit);

static const char *adapter_state_name(enum ib_port_state state)
{
	static const char * const names[] = {
		[IB_PORT_NOP] = "NOP",
		[IB_PORT_DOWN] = "DOWN",
		[IB_PORT_INIT] = "INIT",
		[IB_PORT_ARMED] = "ARMED",
		[IB_PORT_ACTIVE] = "ACTIVE",
		[IB_PORT_ACTIVE_DEFER] = "ACTIVE_DEFER",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "UNKNOWN";
}

static enum ib_port_state adapter_state(struct ib_device *ibdev, u32 port)
{
	struct ib_port_attr attr;

	return ib_query_port(ibdev, port, &attr) ? IB_PORT_NOP : attr.state;
}

/* The first port that is active and will do; 0: none */
static u32 adapter_first_port(struct ib_device *ibdev)
{
	u32 port;

	rdma_for_each_port(ibdev, port)
		if (!rdmatensor_adapter_unfit(ibdev, port) &&
		    adapter_state(ibdev, port) == IB_PORT_ACTIVE)
			return port;
	return 0;
}

static bool adapter_visible(const struct adapter_bind *bind, struct ib_device *ibdev)
{
	return rdma_dev_access_netns(ibdev, bind->net);
}

static void adapter_say_ports(struct adapter_bind *bind, struct ib_device *ibdev,
			      const char **separator)
{
	u32 port;

	rdma_for_each_port(ibdev, port) {
		const char *unfit = rdmatensor_adapter_unfit(ibdev, port);

		adapter_say(bind, "%s%s/%u %s %s", *separator, ibdev->name, port,
			    adapter_state_name(adapter_state(ibdev, port)),
			    adapter_transport(ibdev, port));
		if (unfit)
			adapter_say(bind, " (%s)", unfit);
		*separator = ", ";
	}
}

/* What there is: "rxe0/1 ACTIVE RoCE, mlx5_0/1 DOWN InfiniBand" */
static void adapter_say_devices(struct adapter_bind *bind)
{
	struct rdmatensor_device *device;
	const char *separator = "";

	list_for_each_entry(device, &adapter_devices, entry)
		if (adapter_visible(bind, device->ibdev))
			adapter_say_ports(bind, device->ibdev, &separator);
}

static bool adapter_gid_link_local(const union ib_gid *gid)
{
	return ipv6_addr_type((const struct in6_addr *)gid->raw) & IPV6_ADDR_LINKLOCAL;
}

/*
 * The network device's index if it is in the caller's namespace, 0 if not: rdma_cm
 * will not bind there to an address of another one
 */
static int adapter_gid_ifindex(const struct net *net, const struct ib_gid_attr *attr)
{
	const struct net_device *ndev;
	int ifindex = 0;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev) && net_eq(dev_net(ndev), net))
		ifindex = ndev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

static const char *adapter_gid_unfit(const struct net *net, const struct ib_gid_attr *attr)
{
	if (attr->index > ADAPTER_GID_INDEX_MAX)
		return "is beyond the 255 that a queue pair can name";
	/* What follows is about its network device, which InfiniBand has not */
	if (!rdma_protocol_roce(attr->device, attr->port_num))
		return NULL;
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return "is not RoCE v2";
	if (!adapter_gid_ifindex(net, attr))
		return "belongs to another network namespace";
	return NULL;
}

/* The IP address that a RoCE GID stands for, port 0 */
static void adapter_gid_addr(const struct net *net, const struct ib_gid_attr *attr,
			     struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	rdma_gid2ip((struct sockaddr *)addr, &attr->gid);
	if (adapter_gid_link_local(&attr->gid))
		((struct sockaddr_in6 *)addr)->sin6_scope_id = adapter_gid_ifindex(net, attr);
}

static bool adapter_gid_of_family(const struct ib_gid_attr *attr, sa_family_t family)
{
	bool v4 = ipv6_addr_v4mapped((const struct in6_addr *)attr->gid.raw);

	return family == AF_UNSPEC || family == (v4 ? AF_INET : AF_INET6);
}

static bool adapter_gid_wanted(const struct net *net, const struct ib_gid_attr *attr,
			       const struct adapter_want *want)
{
	if (want->by_addr)
		return !memcmp(&attr->gid, &want->gid, sizeof(want->gid));
	return !want->ifindex || want->ifindex == adapter_gid_ifindex(net, attr);
}

/* The first that is not link-local, else the first. Return: held, or NULL */
static const struct ib_gid_attr *
adapter_search_gid(struct ib_device *ibdev, u32 port, const struct net *net,
		   sa_family_t family, const struct adapter_want *want)
{
	int nr_gids = ibdev->port_data[port].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr, *found = NULL;
	int i;

	for (i = 0; i < nr_gids; i++) {
		/* The table may be sparse: an empty place is not its end */
		attr = rdma_get_gid_attr(ibdev, port, i);
		if (IS_ERR(attr))
			continue;
		if (adapter_gid_unfit(net, attr) || !adapter_gid_of_family(attr, family) ||
		    !adapter_gid_wanted(net, attr, want) ||
		    (found && adapter_gid_link_local(&attr->gid))) {
			rdma_put_gid_attr(attr);
			continue;
		}
		if (found)
			rdma_put_gid_attr(found);
		found = attr;
		if (!adapter_gid_link_local(&found->gid))
			break;
	}
	return found;
}

/* What else a name can be: an address, or a network device. False: neither */
static bool adapter_parse_name(struct adapter_bind *bind)
{
	const char *name = bind->choice->device_name;
	struct adapter_want *want = &bind->want;
	struct net_device *ndev;
	__be32 v4;

	want->by_addr = true;
	if (in4_pton(name, -1, (u8 *)&v4, '\0', NULL)) {
		ipv6_addr_set_v4mapped(v4, (struct in6_addr *)want->gid.raw);
		return true;
	}
	if (in6_pton(name, -1, want->gid.raw, '\0', NULL))
		return true;

	want->by_addr = false;
	rcu_read_lock();
	ndev = dev_get_by_name_rcu((struct net *)bind->net, name);
	if (ndev)
		want->ifindex = ndev->ifindex;
	rcu_read_unlock();
	return want->ifindex;
}

/* The device and port that have such a GID, active ones first */
static struct rdmatensor_device *adapter_find_wanted(struct adapter_bind *bind)
{
	struct rdmatensor_device *device, *found = NULL;
	const struct ib_gid_attr *attr;
	u32 port;

	list_for_each_entry(device, &adapter_devices, entry) {
		if (!adapter_visible(bind, device->ibdev))
			continue;
		rdma_for_each_port(device->ibdev, port) {
			if ((bind->choice->port && bind->choice->port != port) ||
			    !rdma_protocol_roce(device->ibdev, port))
				continue;
			attr = adapter_search_gid(device->ibdev, port, bind->net, AF_UNSPEC,
						  &bind->want);
			if (!attr)
				continue;
			rdma_put_gid_attr(attr);
			if (found && adapter_state(device->ibdev, port) != IB_PORT_ACTIVE)
				continue;
			found = device;
			bind->port = port;
			if (adapter_state(device->ibdev, port) == IB_PORT_ACTIVE)
				return found;
		}
	}
	return found;
}

static struct rdmatensor_device *adapter_choose_device(struct adapter_bind *bind)
{
	const char *name = bind->choice->device_name;
	struct rdmatensor_device *device, *found = NULL;
	int nr_visible = 0, nr_active = 0;

	if (!*name && bind->choice->like) {
		device = bind->choice->like->device;
		/* It is in the list unless it is being removed */
		if (device && !list_empty(&device->entry))
			return device;
		adapter_say(bind,
			    "START: the RDMA device of that domain is being removed: make another domain when it is back");
		return ERR_PTR(-ENODEV);
	}
	list_for_each_entry(device, &adapter_devices, entry) {
		if (!adapter_visible(bind, device->ibdev))
			continue;
		nr_visible++;
		if (*name) {
			if (!strcmp(name, device->ibdev->name))
				return device;
		} else if (adapter_first_port(device->ibdev)) {
			nr_active++;
			found = device;
		}
	}
	if (nr_active == 1)
		return found;

	if (*name && nr_visible && adapter_parse_name(bind)) {
		found = adapter_find_wanted(bind);
		if (found)
			return found;
	}
	if (!nr_visible) {
		adapter_say(bind,
			    "START: there is no RDMA device; load its driver, or make one: rdma link add rxe0 type rxe netdev DEV");
		return ERR_PTR(-ENODEV);
	}
	if (nr_active)
		adapter_say(bind,
			    "START: several RDMA devices are active, name one (device_name, RDMA_DEVICE): ");
	else if (*name)
		adapter_say(bind,
			    "START: '%s' is no RDMA device, and no %s of one in this network namespace; there is: ",
			    name, bind->want.by_addr ? "address" : "network device");
	else
		adapter_say(bind,
			    "START: no RDMA device has an active port; set its link up (see 'rdma link'): ");
	adapter_say_devices(bind);
	return ERR_PTR(nr_active ? -ENOTUNIQ : -ENODEV);
}

static int adapter_choose_port(struct rdmatensor_adapter *adapter, struct adapter_bind *bind)
{
	struct ib_device *ibdev = adapter->ibdev;
	const char *separator = "", *unfit;
	u32 port = bind->choice->port ?: bind->port;

	if (!port) {
		adapter->port = adapter_first_port(ibdev);
		if (adapter->port)
			return 0;
		adapter_say(bind, "START: %s has no active port that will do: ", ibdev->name);
		adapter_say_ports(bind, ibdev, &separator);
		adapter_say(bind, "; set its link up (see 'rdma link')");
		return -ENODEV;
	}

	if (!rdma_is_port_valid(ibdev, port)) {
		adapter_say(bind, "START: port %u is out of range: %s has %u..%u", port,
			    ibdev->name, rdma_start_port(ibdev), rdma_end_port(ibdev));
		return -EINVAL;
	}
	unfit = rdmatensor_adapter_unfit(ibdev, port);
	if (unfit) {
		adapter_say(bind,
			    "START: %s/%u is %s with %s, which is needed; take another device",
			    ibdev->name, port, adapter_transport(ibdev, port), unfit);
		return -ENODEV;
	}
	if (adapter_state(ibdev, port) != IB_PORT_ACTIVE) {
		adapter_say(bind,
			    "START: %s/%u is %s, not ACTIVE; set its link up (see 'rdma link')",
			    ibdev->name, port, adapter_state_name(adapter_state(ibdev, port)));
		return -ENODEV;
	}
	adapter->port = port;
	return 0;
}

static int adapter_set_pkey(struct rdmatensor_adapter *adapter, struct adapter_bind *bind,
			    const struct ib_port_attr *port)
{
	u32 index = bind->choice->pkey_index;

	if (index >= port->pkey_tbl_len) {
		adapter_say(bind, "START: pkey_index %u is out of range: %s/%u has 0..%d", index,
			    adapter->ibdev->name, adapter->port, port->pkey_tbl_len - 1);
		return -EINVAL;
	}
	if (ib_query_pkey(adapter->ibdev, adapter->port, index, &adapter->pkey) ||
	    !adapter->pkey) {
		adapter_say(bind, "START: there is no P_Key at pkey_index %u of %s/%u", index,
			    adapter->ibdev->name, adapter->port);
		return -EINVAL;
	}
	adapter->pkey_index = index;
	return 0;
}

static int adapter_set_mtu(struct rdmatensor_adapter *adapter, struct adapter_bind *bind,
			   const struct ib_port_attr *port)
{
	u32 bytes = bind->choice->mtu;

	adapter->mtu = port->active_mtu;
	if (!bytes)
		return 0;

	adapter->mtu = ib_mtu_int_to_enum(min_t(u32, bytes, INT_MAX));
	if (ib_mtu_enum_to_int(adapter->mtu) == bytes && adapter->mtu <= port->active_mtu)
		return 0;
	adapter_say(bind,
		    "START: mtu %u is out of range: 256, 512, 1024, 2048 or 4096, and %s/%u has %d active",
		    bytes, adapter->ibdev->name, adapter->port,
		    ib_mtu_enum_to_int(port->active_mtu));
	return -EINVAL;
}

static const struct ib_gid_attr *
adapter_choose_gid(const struct rdmatensor_adapter *adapter, struct adapter_bind *bind,
		   const struct ib_port_attr *port)
{
	const char *name = adapter->ibdev->name, *unfit;
	u32 index = bind->choice->has_gid_index ? bind->choice->gid_index : 0;
	const struct ib_gid_attr *attr;

	if (adapter->roce && !bind->choice->has_gid_index) {
		attr = adapter_search_gid(adapter->ibdev, adapter->port, bind->net, AF_UNSPEC,
					  &bind->want);
		if (attr)
			return attr;
		adapter_say(bind,
			    "START: %s/%u has no RoCE v2 GID in this network namespace; give its network device an IP address",
			    name, adapter->port);
		return ERR_PTR(-EADDRNOTAVAIL);
	}

	if (index >= port->gid_tbl_len) {
		adapter_say(bind, "START: gid_index %u is out of range: %s/%u has 0..%d", index,
			    name, adapter->port, port->gid_tbl_len - 1);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	attr = rdma_get_gid_attr(adapter->ibdev, adapter->port, index);
	if (IS_ERR(attr)) {
		adapter_say(bind,
			    "START: gid_index %u of %s/%u is empty; see /sys/class/infiniband/%s/ports/%u/gids",
			    index, name, adapter->port, name, adapter->port);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	unfit = adapter_gid_unfit(bind->net, attr);
	if (unfit) {
		adapter_say(bind,
			    "START: the GID at gid_index %u of %s/%u %s; take another, or let one be chosen",
			    index, name, adapter->port, unfit);
		rdma_put_gid_attr(attr);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	return attr;
}

static int adapter_set_gid(struct rdmatensor_adapter *adapter, struct adapter_bind *bind,
			   const struct ib_port_attr *port)
{
	const struct ib_gid_attr *attr;

	attr = adapter_choose_gid(adapter, bind, port);
	if (IS_ERR(attr))
		return PTR_ERR(attr);

	adapter->gid = attr->gid;
	adapter->gid_index = attr->index;
	adapter->has_addr = adapter->roce;
	adapter->gid_named = bind->choice->has_gid_index || bind->want.by_addr;
	adapter->ifindex = bind->want.ifindex;
	if (adapter->has_addr)
		adapter_gid_addr(bind->net, attr, &adapter->addr);
	rdma_put_gid_attr(attr);
	return 0;
}

static u32 adapter_list_len(const struct ib_device *ibdev)
{
	u32 len = max(ibdev->attrs.max_fast_reg_page_list_len, 1U);

	return ibdev->ops.driver_id == RDMA_DRIVER_IRDMA ? min(len, ADAPTER_LIST_LEN_IRDMA) : len;
}

u8 rdmatensor_adapter_seg_shift(const struct ib_device *ibdev)
{
	u64 bytes = (u64)adapter_list_len(ibdev) << PAGE_SHIFT;

	if (ibdev->attrs.max_mr_size >= PAGE_SIZE)
		bytes = min(bytes, ibdev->attrs.max_mr_size);
	return min(ilog2(bytes), ADAPTER_SEG_SHIFT_MAX);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_adapter_seg_shift);

/*
 * Drivers that tell the device the length of a fast registration's pages. Others list pages as
 * long as they are told and have the device take them for PAGE_SIZE (erdma, vmw_pvrdma), so that
 * content would go astray. page_size_cap, which is of all registrations, does not say
 */
static bool adapter_has_long_pages(const struct ib_device *ibdev)
{
	switch (ibdev->ops.driver_id) {
	case RDMA_DRIVER_BNXT_RE:
	case RDMA_DRIVER_CXGB4:
	case RDMA_DRIVER_HNS:
	case RDMA_DRIVER_IRDMA:
	case RDMA_DRIVER_MLX4:
	case RDMA_DRIVER_MLX5:
	case RDMA_DRIVER_OCRDMA:
	case RDMA_DRIVER_QEDR:
	case RDMA_DRIVER_RXE:
		return true;
	default:
		return false;
	}
}

static u8 adapter_seg_shift_max(const struct ib_device *ibdev, bool rxe)
{
	u8 shift = rxe ? ADAPTER_LONG_SEG_SHIFT_RXE : ADAPTER_LONG_SEG_SHIFT_MAX;

	if (!adapter_has_long_pages(ibdev))
		return rdmatensor_adapter_seg_shift(ibdev);
	if (ibdev->attrs.max_mr_size >= PAGE_SIZE)
		shift = min_t(u8, shift, ilog2(ibdev->attrs.max_mr_size));
	return shift;
}

static int adapter_set(struct rdmatensor_adapter *adapter, struct adapter_bind *bind)
{
	struct ib_port_attr port;
	bool rxe;
	int ret;

	ret = adapter_choose_port(adapter, bind);
	if (ret)
		return ret;
	ret = ib_query_port(adapter->ibdev, adapter->port, &port);
	if (ret) {
		adapter_say(bind,
			    "START: %s/%u does not tell its attributes (%pe); see the kernel log",
			    adapter->ibdev->name, adapter->port, ERR_PTR(ret));
		return -ENODEV;
	}

	adapter->roce = rdma_protocol_roce(adapter->ibdev, adapter->port);
	adapter->seg_shift = rdmatensor_adapter_seg_shift(adapter->ibdev);
	adapter->software = ib_uses_virt_dma(adapter->ibdev);
	/*
	 * Soft-RoCE takes 7 for no end, as the specification has it for RNR retries
	 * only, and its ack timeout to the letter
	 */
	rxe = adapter->ibdev->ops.driver_id == RDMA_DRIVER_RXE;
	adapter->seg_shift_max = adapter_seg_shift_max(adapter->ibdev, rxe);
	adapter->retry_max = rxe ? 6 : 7;
	adapter->timeout_extra = rxe ? 2 : 0;
	/* Where processors move the bytes, completions come in batches, and others wait for long */
	adapter->lane_bytes = rxe ? SZ_128K : SZ_1M;
	ret = adapter_set_pkey(adapter, bind, &port);
	if (ret)
		return ret;
	ret = adapter_set_mtu(adapter, bind, &port);
	if (ret)
		return ret;
	return adapter_set_gid(adapter, bind, &port);
}

static void adapter_say_chosen(const struct rdmatensor_adapter *adapter,
			       struct adapter_bind *bind)
{
	const struct rdmatensor_adapter_choice *choice = bind->choice;
	const char *by = bind->want.by_addr ? "by its address" :
			 bind->want.ifindex ? "by its network device" :
			 choice->device_name[0] ? "named" : "the only active one";

	adapter_say(bind, "device %s (%s), port %u (%s), GID %u ", adapter->ibdev->name, by,
		    adapter->port, choice->port ? "named" : bind->port ? by :
		    "the first active one", adapter->gid_index);
	if (adapter->has_addr)
		adapter_say(bind, "%pISc ", &adapter->addr);
	else
		adapter_say(bind, "%pI6 ", adapter->gid.raw);
	adapter_say(bind, "(%s), MTU %d (%s)",
		    choice->has_gid_index || bind->want.by_addr ? "named" :
		    !adapter->roce ? "the first" :
		    adapter_gid_link_local(&adapter->gid) ?
		    "RoCE v2, link-local for want of another" :
		    "the first RoCE v2 one with an IPv4 or global IPv6 address",
		    ib_mtu_enum_to_int(adapter->mtu), choice->mtu ? "named" : "active");
}

int rdmatensor_adapter_bind(struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_adapter_choice *choice,
			    void (*gone)(struct rdmatensor_adapter *adapter),
			    char *cause, size_t room)
{
	struct adapter_bind bind = {
		.choice = choice,
		.net = choice->net ?: current->nsproxy->net_ns,
		.text = cause,
		.room = room,
	};
	struct rdmatensor_device *device;
	int ret;

	might_sleep();
	memset(adapter, 0, sizeof(*adapter));
	INIT_LIST_HEAD(&adapter->entry);
	init_completion(&adapter->gone_done);
	adapter->gone = gone;

	mutex_lock(&adapter_lock);
	device = adapter_choose_device(&bind);
	if (IS_ERR(device)) {
		ret = PTR_ERR(device);
		goto out_unlock;
	}

	adapter->ibdev = device->ibdev;
	ret = adapter_set(adapter, &bind);
	if (ret) {
		adapter->ibdev = NULL;
		goto out_unlock;
	}

	adapter_say_chosen(adapter, &bind);
	adapter->device = device;
	list_add_tail(&adapter->entry, choice->last ? &device->last : &device->adapters);
out_unlock:
	mutex_unlock(&adapter_lock);
	return ret;
}

int rdmatensor_adapter_source(const struct rdmatensor_adapter *adapter, const struct net *net,
			      sa_family_t family, struct sockaddr_storage *addr)
{
	const struct adapter_want want = { .ifindex = adapter->ifindex };
	const struct ib_gid_attr *attr;

	*addr = adapter->addr;
	if (!adapter->has_addr || adapter->addr.ss_family == family)
		return 0;
	if (adapter->gid_named)
		return -EAFNOSUPPORT;
	attr = adapter_search_gid(adapter->ibdev, adapter->port, net, family, &want);
	if (!attr)
		return -EAFNOSUPPORT;
	adapter_gid_addr(net, attr, addr);
	rdma_put_gid_attr(attr);
	return 0;
}

/* True: it is, or is in IPv6, the address *@ip4 */
static bool adapter_ip4(const struct sockaddr *addr, __be32 *ip4)
{
	const struct in6_addr *ip6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

	if (addr->sa_family == AF_INET)
		*ip4 = ((const struct sockaddr_in *)addr)->sin_addr.s_addr;
	else if (ipv6_addr_v4mapped(ip6))
		*ip4 = ip6->s6_addr32[3];
	else
		return false;
	return true;
}

bool rdmatensor_adapter_is_loopback(const struct sockaddr *addr)
{
	__be32 ip4;

	if (adapter_ip4(addr, &ip4))
		return ipv4_is_loopback(ip4);
	return ipv6_addr_loopback(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

bool rdmatensor_adapter_is_unspecified(const struct sockaddr *addr)
{
	__be32 ip4;

	if (adapter_ip4(addr, &ip4))
		return ip4 == htonl(INADDR_ANY);
	return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

void rdmatensor_adapter_unbind(struct rdmatensor_adapter *adapter)
{
	bool going = false;

	might_sleep();
	mutex_lock(&adapter_lock);
	if (adapter->device) {
		/* The removal has taken it out and not put it down yet */
		going = list_empty(&adapter->entry);
		if (!going) {
			list_del_init(&adapter->entry);
			adapter->ibdev = NULL;
			adapter->device = NULL;
		}
	}
	mutex_unlock(&adapter_lock);
	if (going)
		wait_for_completion(&adapter->gone_done);
}
