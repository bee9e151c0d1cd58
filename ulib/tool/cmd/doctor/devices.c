// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA devices, their ports and GIDs, and their network devices.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"
#include "say.h"
#include "sysfs.h"
#include "tool/common/params.h"

/* Prefix of the state of an active port */
#define ACTIVE "4:"
/* A queue pair cannot use a higher index */
#define GIDS_MAX 256

static bool parse_gid(const char *text, struct in6_addr *gid)
{
	return inet_pton(AF_INET6, text, gid) == 1 && !IN6_IS_ADDR_UNSPECIFIED(gid);
}

/**
 * struct gids - of a port
 * @nr: that are not empty
 * @v2: RoCE v2 ones
 * @routable: of those, with an IPv4 or a global IPv6 address
 */
struct gids {
	int nr;
	int v2;
	int routable;
};

static void count_gids(const char *device, const char *port, struct gids *gids)
{
	char text[128], type[64];
	struct in6_addr gid;
	int i;

	memset(gids, 0, sizeof(*gids));
	for (i = 0; i < GIDS_MAX; i++) {
		if (!sysfs_line(text, sizeof(text), SYSFS_DEVICES "/%s/ports/%s/gids/%d", device,
				port, i))
			continue;
		if (!parse_gid(text, &gid))
			continue;
		gids->nr++;
		if (!sysfs_line(type, sizeof(type), SYSFS_DEVICES "/%s/ports/%s/gid_attrs/types/%d",
				device, port, i) || !strstr(type, "v2"))
			continue;
		gids->v2++;
		if (!IN6_IS_ADDR_LINKLOCAL(&gid))
			gids->routable++;
	}
}

/* The network device of a RoCE port, as its first GID has it */
static void port_netdev(const char *device, const char *port, char *netdev, size_t len)
{
	int i;

	for (i = 0; i < GIDS_MAX; i++)
		if (sysfs_line(netdev, len, SYSFS_DEVICES "/%s/ports/%s/gid_attrs/ndevs/%d",
			       device, port, i))
			return;
	/* Soft-RoCE and siw name their network device */
	sysfs_line(netdev, len, SYSFS_DEVICES "/%s/parent", device);
}

static bool say_gids(struct doctor *doctor, const char *device, const char *port,
		     const char *netdev)
{
	char remedy[256];
	struct gids gids;

	count_gids(device, port, &gids);
	snprintf(remedy, sizeof(remedy), "give %s an address: ip addr add ADDR/LEN dev %s",
		 *netdev ? netdev : "its network device", *netdev ? netdev : "NETDEV");
	if (!gids.v2) {
		doctor_say(doctor, VERDICT_FAIL, "gid", remedy,
			   "%s/%s has %d GIDs, none of RoCE v2", device, port, gids.nr);
		return false;
	}
	if (!gids.routable)
		doctor_say(doctor, VERDICT_WARN, "gid", remedy,
			   "%s/%s has link-local GIDs only: peers must be on the same link",
			   device, port);
	else
		doctor_say(doctor, VERDICT_OK, "gid", NULL,
			   "%s/%s has %d GIDs, %d of RoCE v2 with an IPv4 or global IPv6 address",
			   device, port, gids.nr, gids.routable);
	return true;
}

static bool is_active(const char *device, const char *port)
{
	char state[64];

	return sysfs_line(state, sizeof(state), SYSFS_DEVICES "/%s/ports/%s/state", device, port) &&
	       !strncmp(state, ACTIVE, strlen(ACTIVE));
}

/* @down: verdict on a port that is not active. True: the port can be used */
static bool say_port(struct doctor *doctor, const char *device, const char *port,
		     enum verdict down)
{
	char state[64], layer[64], netdev[32], flags[32], parent[64], remedy[384];
	bool software = sysfs_line(parent, sizeof(parent), SYSFS_DEVICES "/%s/parent", device);
	bool roce, up;

	if (!sysfs_line(state, sizeof(state), SYSFS_DEVICES "/%s/ports/%s/state", device, port)) {
		doctor_say(doctor, down, "port", "is /sys mounted, and may you read it?",
			   "%s/%s: its state cannot be read: " SYSFS_DEVICES "/%s/ports/%s/state",
			   device, port, device, port);
		return false;
	}
	sysfs_line(layer, sizeof(layer), SYSFS_DEVICES "/%s/ports/%s/link_layer", device, port);
	/* A port whose link layer cannot be read is checked as Ethernet, which has more checks */
	roce = strcmp(layer, "InfiniBand");
	port_netdev(device, port, netdev, sizeof(netdev));
	if (strncmp(state, ACTIVE, strlen(ACTIVE))) {
		up = *netdev &&
		     sysfs_line(flags, sizeof(flags), SYSFS_NETDEVS "/%s/flags", netdev) &&
		     strtoul(flags, NULL, 0) & IFF_UP;
		if (!roce)
			snprintf(remedy, sizeof(remedy), "check the cable and the subnet manager: ibstat %s",
				 device);
		else if (up)
			snprintf(remedy, sizeof(remedy), "%s is up, but has no link: check the cable and the switch",
				 netdev);
		else
			snprintf(remedy, sizeof(remedy), "ip link set %s up%s%s%s",
				 *netdev ? netdev : "NETDEV",
				 software ? "; soft-RoCE takes no connections after its link was down: rdma link del " : "",
				 software ? device : "",
				 software ? ", then rdma link add it again" : "");
		doctor_say(doctor, down, "port", remedy, "%s/%s is %s", device, port, state);
		return false;
	}
	doctor_say(doctor, VERDICT_OK, "port", NULL, "%s/%s is ACTIVE, %s%s%s%s", device, port,
		   roce ? "Ethernet" : layer, *netdev ? " over " : "", netdev,
		   software ? ", software" : "");
	return !roce || say_gids(doctor, device, port, netdev);
}

static bool is_number(const char *name)
{
	return *name && !name[strspn(name, "0123456789")];
}

/**
 * struct ports - those of all devices that are meant
 * @doctor: the visit
 * @devices: RDMA devices seen
 * @error: errno, if they cannot be looked for; else 0
 * @active: active ports of those that are meant
 * @usable: of those, what has a GID to use
 * @down: how bad it is that one is not active
 */
struct ports {
	struct doctor *doctor;
	int devices;
	int error;
	int active;
	int usable;
	enum verdict down;
};

static void count_port(struct ports *ports, const char *device, const char *port)
{
	ports->active += is_active(device, port);
}

static void judge_port(struct ports *ports, const char *device, const char *port)
{
	ports->usable += say_port(ports->doctor, device, port, ports->down);
}

static void each_port(struct ports *ports, const char *device,
		      void (*look)(struct ports *ports, const char *device, const char *port))
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), SYSFS_DEVICES "/%s/ports", device);
	dir = opendir(path);
	/* What cannot be read may be wrong; the second look reports it */
	if (!dir && look == judge_port)
		doctor_say(ports->doctor, VERDICT_FAIL, "port",
			   "see the kernel log, and check whether this user may read it", "%s: %s", path,
			   strerror(errno));
	while (dir && (entry = readdir(dir)))
		if (is_number(entry->d_name))
			look(ports, device, entry->d_name);
	if (dir)
		closedir(dir);
}

/* The device that a context would take; "": the only active one */
static const char *wanted_device(const struct doctor *doctor, char *device, size_t len)
{
	if (*doctor->options.start.device_name)
		return doctor->options.start.device_name;
	return param_read("device", device, len) ? "" : device;
}

/* If a device is named, the others are not checked */
static bool is_meant(const struct doctor *doctor, const char *device)
{
	char path[PATH_MAX], named[64];
	const char *wanted = wanted_device(doctor, named, sizeof(named));

	if (!*wanted || !strcmp(wanted, device))
		return true;
	snprintf(path, sizeof(path), SYSFS_DEVICES "/%s", wanted);
	return access(path, F_OK);
}

static void each_device(struct ports *ports,
			void (*look)(struct ports *ports, const char *device, const char *port))
{
	struct dirent *entry;
	DIR *dir = opendir(SYSFS_DEVICES);

	ports->devices = 0;
	/* Without this folder there is no RDMA device; another error leaves it unknown */
	ports->error = dir || errno == ENOENT ? 0 : errno;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ports->devices++;
		if (is_meant(ports->doctor, entry->d_name))
			each_port(ports, entry->d_name, look);
	}
	if (dir)
		closedir(dir);
}

/* How suitable it is for a software device; 0: not at all */
static int netdev_rank(const struct ifaddrs *one)
{
	const struct sockaddr_in6 *in6 = (const void *)one->ifa_addr;
	bool addressed = one->ifa_addr &&
			 (one->ifa_addr->sa_family == AF_INET ||
			  (one->ifa_addr->sa_family == AF_INET6 &&
			   !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)));

	if (one->ifa_flags & IFF_LOOPBACK)
		return 0;
	/* Peers are reached by an address; ifb and similar devices have none and are down */
	return 1 + !!(one->ifa_flags & IFF_UP) + 2 * addressed;
}

/* The network device that a remedy names for a software device */
static void some_netdev(char *netdev, size_t len)
{
	struct ifaddrs *all = NULL, *one;
	int best = 0;

	snprintf(netdev, len, "NETDEV");
	if (getifaddrs(&all))
		return;
	for (one = all; one; one = one->ifa_next) {
		if (netdev_rank(one) <= best)
			continue;
		best = netdev_rank(one);
		snprintf(netdev, len, "%s", one->ifa_name);
	}
	freeifaddrs(all);
}

static void say_no_device(struct doctor *doctor)
{
	char netdev[32], remedy[256];

	some_netdev(netdev, sizeof(netdev));
	snprintf(remedy, sizeof(remedy), "load the card's driver; or without one soft-RoCE: %srdma link add rxe0 type rxe netdev %s",
		 access("/sys/module/rdma_rxe", F_OK) ? "modprobe rdma_rxe; " : "", netdev);
	doctor_say(doctor, VERDICT_FAIL, "device", remedy, "there is no RDMA device");
}

bool doctor_devices(struct doctor *doctor)
{
	struct ports ports = { .doctor = doctor };

	each_device(&ports, count_port);
	/* A port that is not needed may be down */
	ports.down = ports.active ? VERDICT_WARN : VERDICT_FAIL;
	each_device(&ports, judge_port);
	if (ports.error)
		doctor_say(doctor, VERDICT_FAIL, "device", "is /sys mounted, and may you read it?",
			   SYSFS_DEVICES ": %s", strerror(ports.error));
	else if (!ports.devices)
		say_no_device(doctor);
	return ports.usable;
}
