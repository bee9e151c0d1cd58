/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The adapter: which device, port and GID a context is bound to, and why.
 */
#ifndef RDMATENSOR_ADAPTER_H
#define RDMATENSOR_ADAPTER_H

#include <linux/list.h>
#include <linux/completion.h>
#include <linux/socket.h>
#include <rdma/ib_verbs.h>

struct net;
struct rdmatensor_device;

/**
 * struct rdmatensor_adapter_choice - what the user asks for
 * @device_name: of an RDMA device; or of its network device, or one of its IP addresses;
 *       "" for the only device that has an active port
 * @port: from 1; 0: the first active one
 * @has_gid_index: @gid_index is meant
 * @gid_index: index in the port's table, which may be sparse
 * @pkey_index: index in the port's P_Key table
 * @mtu: bytes; 0: the active MTU
 * @net: network namespace that the device must be accessible from and the GID's
 *       network device be in; NULL: the caller's
 * @like: with an empty @device_name: the device that this one is bound to, whatever its name is;
 *        -ENODEV if that has gone; NULL: as @device_name says
 * @last: has what others build on, so it is told of a removal after them
 */
struct rdmatensor_adapter_choice {
	const char *device_name;
	u32 port;
	bool has_gid_index;
	u32 gid_index;
	u32 pkey_index;
	u32 mtu;
	const struct net *net;
	const struct rdmatensor_adapter *like;
	bool last;
};

/**
 * struct rdmatensor_adapter - the binding of a context, or of a domain
 * @ibdev: valid until gone() has returned or unbind(), NULL after it
 * @port: from 1
 * @roce: Ethernet link layer
 * @gid_index: in the port's table
 * @gid: the GID at @gid_index
 * @gid_named: START named the GID, so no other is used
 * @ifindex: network device whose GIDs are meant, 0: any
 * @pkey: P_Key value at the chosen index
 * @pkey_index: that index
 * @mtu: path MTU of new channels
 * @retry_max: the greatest number of transport retries that is not taken for infinity
 * @lane_bytes: content bytes that a lane holds posted while others wait, unless START sets it
 * @timeout_extra: added to the exponent of the ack timeout, so that it lasts as long
 *                 as on hardware, which may take up to four times of what is set
 * @seg_shift: log2 of the bytes behind one memory region: the greatest power of
 *             two that the device fast-registers with pages of PAGE_SIZE, and
 *             not above 16 MiB
 * @seg_shift_max: log2 of the bytes behind one memory region at most, of pages that are longer
 * @software: it works by the CPU, and has no DMA
 * @has_addr: @addr is valid
 * @addr: RoCE: the IP address that the GID stands for, port 0; a link-local one
 *        has its scope id. rdma_cm ids bind to it, which makes rdma_cm use
 *        this device, port and GID. InfiniBand: none
 * @entry: in the device's list of bindings
 * @device: what it is bound to; NULL after gone() or unbind()
 * @gone: see rdmatensor_adapter_bind()
 * @gone_done: gone() has returned
 */
struct rdmatensor_adapter {
	struct ib_device *ibdev;
	u32 port;
	bool roce;
	u32 gid_index;
	union ib_gid gid;
	bool gid_named;
	int ifindex;
	u16 pkey;
	u16 pkey_index;
	enum ib_mtu mtu;
	u32 lane_bytes;
	u8 retry_max;
	u8 timeout_extra;
	u8 seg_shift;
	u8 seg_shift_max;
	bool software;
	bool has_addr;
	struct sockaddr_storage addr;

	struct list_head entry;
	struct rdmatensor_device *device;
	void (*gone)(struct rdmatensor_adapter *adapter);
	struct completion gone_done;
};

/* Module load and unload. Return: 0, or a negative errno of the RDMA core */
int rdmatensor_adapter_register(void);
/* No adapter is bound any more */
void rdmatensor_adapter_unregister(void);

/**
 * rdmatensor_adapter_bind - choose device, port and GID
 * @adapter: filled
 * @choice: what is asked for
 * @gone: called once, in process context, when the device is being removed, which
 *        may be before bind has returned; must end every use of @ibdev before it
 *        returns. With @choice's @last it is called after those without it
 * @cause: line that says what was chosen and by which rule, or what failed,
 *         why, and the remedy
 * @room: bytes of @cause
 *
 * Rule: the named device, else the only one with an active port. The named
 * port, else its first active one. RoCE: the named GID index, which must be a
 * RoCE v2 GID, else the first RoCE v2 GID that is IPv4-mapped or global IPv6, else
 * a link-local one. InfiniBand: the named index, else 0. Devices without memory
 * management extensions (fast registration), or without PAGE_SIZE among their pages, and
 * iWARP (no write with immediate), are no candidates, and the line says so when that is what is
 * missing. GIDs beyond index 255 are none: a queue pair cannot name them.
 *
 * On error @adapter is not bound, and @gone will not be called. Return: 0;
 * -ENODEV: no such device, or none active; -ENOTUNIQ: several devices are
 * candidates, @cause lists them; -EADDRNOTAVAIL: no such or no usable GID;
 * -EINVAL: port, P_Key index or MTU out of range, with the range.
 */
int rdmatensor_adapter_bind(struct rdmatensor_adapter *adapter,
			    const struct rdmatensor_adapter_choice *choice,
			    void (*gone)(struct rdmatensor_adapter *adapter),
			    char *cause, size_t room);

/*
 * Whether the device can be told that a page has PAGE_SIZE bytes. irdma takes any length that it
 * does not know for 4 KiB, and moves all else to where it should not, where PAGE_SIZE is 64 KiB
 */
bool rdmatensor_adapter_has_pages(const struct ib_device *ibdev);
/* What is needed and the port has not, in words; NULL: it will do */
const char *rdmatensor_adapter_unfit(struct ib_device *ibdev, u32 port);
/* log2 of the bytes behind one memory region of PAGE_SIZE pages, as its driver keeps to it */
u8 rdmatensor_adapter_seg_shift(const struct ib_device *ibdev);

/**
 * rdmatensor_adapter_source - where a connection to a peer begins
 * @adapter: bound, and its device is not gone
 * @net: network namespace of the connection
 * @family: AF_INET or AF_INET6, the peer's
 * @addr: out: address of the adapter's GID; if that is of the other family, of the
 *        first GID of this one on the same port, by the rule above. InfiniBand:
 *        family 0, none is needed
 *
 * Return: 0; -EAFNOSUPPORT: there is none, or START named the GID.
 */
int rdmatensor_adapter_source(const struct rdmatensor_adapter *adapter, const struct net *net,
			      sa_family_t family, struct sockaddr_storage *addr);

/*
 * Addresses that no RDMA device has. AF_INET or AF_INET6; an IPv4 address that is mapped into
 * IPv6 counts as what it is
 */
bool rdmatensor_adapter_is_loopback(const struct sockaddr *addr);
bool rdmatensor_adapter_is_unspecified(const struct sockaddr *addr);

/*
 * After it gone() does not run and will not be called. Not from gone() itself, and
 * not under a lock that gone() takes. Harmless after an error of bind, or twice
 */
void rdmatensor_adapter_unbind(struct rdmatensor_adapter *adapter);

#endif /* RDMATENSOR_ADAPTER_H */
