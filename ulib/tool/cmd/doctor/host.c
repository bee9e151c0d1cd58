// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What doctor sees of this machine without a context: the module, its file, limits.
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"
#include "say.h"
#include "sysfs.h"
#include "tool/common/context.h"
#include "tool/common/params.h"

/* Less than this is too little for the pools of any model */
#define MEMLOCK_LEAST (UINT64_C(64) << 20)
bool doctor_module(struct doctor *doctor)
{
	char version[64];

	if (access(SYSFS_MODULE, F_OK)) {
		doctor_say(doctor, VERDICT_FAIL, "module",
			   "modprobe rdmatensor, as root; if there is none, make install, or with packages see dkms status: it needs the headers of this kernel",
			   "the module rdmatensor is not loaded");
		return false;
	}
	sysfs_line(version, sizeof(version), SYSFS_MODULE "/version");
	if (strcmp(version, rdmatensor_version()))
		doctor_say(doctor, VERDICT_WARN, "module",
			   "install module and library of the same version",
			   "the module is %s, this tool %s", *version ? version : "of no version",
			   rdmatensor_version());
	else
		doctor_say(doctor, VERDICT_OK, "module", NULL, "rdmatensor %s", version);
	return true;
}

/* Who may open it, for a remedy */
static void node_remedy(const char *path, char *text, size_t len)
{
	const struct group *entry;
	char group[64];
	struct stat st;

	if (stat(path, &st)) {
		snprintf(text, len, "be root");
		return;
	}
	if (st.st_gid == 0) {
		snprintf(text, len,
			 "be root; or have the package's udev rule give %s to group rdma (install it, or `udevadm trigger`), and adduser USER rdma",
			 path);
		return;
	}
	entry = getgrgid(st.st_gid);
	if (entry)
		snprintf(group, sizeof(group), "%s", entry->gr_name);
	else
		snprintf(group, sizeof(group), "%u", st.st_gid);
	snprintf(text, len,
		 "be root, or in group %s (adduser USER %s, and log in again), or chgrp and chmod g+rw %s (it is %04o)",
		 group, group, path, st.st_mode & 07777);
}

void doctor_node(struct doctor *doctor)
{
	const char *path = context_path(&doctor->options);
	struct rdmatensor_query query;
	struct rdmatensor *rt;
	char remedy[256];
	int err;

	err = rdmatensor_open(path, &rt);
	if (err == -EACCES || err == -EPERM) {
		node_remedy(path, remedy, sizeof(remedy));
		doctor_say(doctor, VERDICT_FAIL, "file", remedy, "%s: you may not open it", path);
		return;
	}
	if (err && strcmp(path, RDMATENSOR_DEVICE_PATH)) {
		doctor_say(doctor, VERDICT_FAIL, "file",
			   "drop --device-file and RDMATENSOR_DEVICE_PATH, or name the module's file",
			   "%s: %s", path, strerror(-err));
		return;
	}
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "file",
			   "mount devtmpfs, or give the container its devices: /dev/rdmatensor, misc, the minor in /proc/misc",
			   "%s: %s", path, strerror(-err));
		return;
	}
	err = rdmatensor_query(rt, &query);
	rdmatensor_close(rt);
	if (err)
		doctor_say(doctor, VERDICT_FAIL, "file", "is it the module's file?",
			   "%s: query: %s", path, strerror(-err));
	else if (query.abi_version != RDMATENSOR_ABI_VERSION)
		doctor_say(doctor, VERDICT_FAIL, "file",
			   "install module and library of the same version",
			   "%s: the module has ABI %u, this tool %d", path, query.abi_version,
			   RDMATENSOR_ABI_VERSION);
	else
		doctor_say(doctor, VERDICT_OK, "file", NULL, "%s, ABI %u", path,
			   query.abi_version);
}

/* CAP_IPC_LOCK, effective */
static bool may_lock(void)
{
	uint64_t caps = 0;
	char line[128];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
			break;
	if (file)
		fclose(file);
	return caps >> 14 & 1;
}

void doctor_memlock(struct doctor *doctor)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (may_lock())
		doctor_say(doctor, VERDICT_OK, "memlock", NULL, "no limit for this process (CAP_IPC_LOCK)");
	else if (limit.rlim_cur == RLIM_INFINITY)
		doctor_say(doctor, VERDICT_OK, "memlock", NULL, "unlimited");
	else if (!param_memlock() && limit.rlim_cur < param_ring_bytes())
		doctor_say(doctor, VERDICT_WARN, "memlock",
			   "raise it for this service, container or user (LimitMEMLOCK=, --ulimit memlock=, a line in /etc/security/limits.conf, ulimit -l as root), or lower ring_entries",
			   "rings and registered memory of this user can have %" PRIu64 " KiB in all, and a ring takes %" PRIu64 " by default",
			   (uint64_t)limit.rlim_cur >> 10, param_ring_bytes() >> 10);
	else if (!param_memlock())
		doctor_say(doctor, VERDICT_OK, "memlock", NULL, "pools do not count (memlock=0), their memory cgroup bounds them; rings and registered memory of this user can have %" PRIu64 " KiB in all",
			   (uint64_t)limit.rlim_cur >> 10);
	else if (limit.rlim_cur < MEMLOCK_LEAST)
		doctor_say(doctor, VERDICT_WARN, "memlock",
			   "raise it for this service, container or user (LimitMEMLOCK=, --ulimit memlock=, a line in /etc/security/limits.conf, ulimit -l as root)",
			   "pools and rings of this user can have %" PRIu64 " KiB in all",
			   (uint64_t)limit.rlim_cur >> 10);
	else
		doctor_say(doctor, VERDICT_OK, "memlock", NULL, "pools and rings of this user can have %" PRIu64 " MiB in all",
			   (uint64_t)limit.rlim_cur >> 20);
}
