/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who made a context or a domain, so that it is shown to its own user without privileges.
 */
#ifndef RDMATENSOR_OWNER_H
#define RDMATENSOR_OWNER_H

#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>

/**
 * struct rdmatensor_owner - a process and its user
 * @uid: effective, when it made it
 * @pid: the process, referenced, also when it has ended
 */
struct rdmatensor_owner {
	kuid_t uid;
	struct pid *pid;
};

/* The calling process. Undone by rdmatensor_owner_put() */
static inline void rdmatensor_owner_init(struct rdmatensor_owner *owner)
{
	owner->uid = current_euid();
	owner->pid = get_pid(task_tgid(current));
}

static inline void rdmatensor_owner_put(struct rdmatensor_owner *owner)
{
	put_pid(owner->pid);
}

/* As the caller's PID namespace numbers it; 0: it does not see it */
static inline pid_t rdmatensor_owner_pid(const struct rdmatensor_owner *owner)
{
	return pid_nr_ns(owner->pid, task_active_pid_ns(current));
}

/*
 * The caller is the same user, and sees the process. Containers that share a number of users,
 * but no PID namespace, do not see what each other's processes do
 */
static inline bool rdmatensor_owner_is_caller(const struct rdmatensor_owner *owner)
{
	return uid_eq(owner->uid, current_euid()) && rdmatensor_owner_pid(owner);
}

#endif /* RDMATENSOR_OWNER_H */
