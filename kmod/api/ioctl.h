/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls, with their structs in kernel memory; errors as in the ABI's header. Any number
 * of threads may call them for one file.
 *
 * Room api: the device file, its ioctls and netlink. It checks what a process passes and calls
 * the rooms below; only module load and unload call it.
 */
#ifndef RDMATENSOR_IOCTL_H
#define RDMATENSOR_IOCTL_H

#include <linux/types.h>

struct rdmatensor_context;
struct rdmatensor_pool;

/* control_ioctls.c */
int rdmatensor_ioctl_query(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_start(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_configure(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_stats(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_connect(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_disconnect(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_channel_query(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_step_abort(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_status_text(struct rdmatensor_context *context, void *arg);
/* pool_ioctls.c */
int rdmatensor_ioctl_pool_create(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_pool_register(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_pool_import(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_pool_destroy(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_pool_alloc(struct rdmatensor_context *context, void *arg);
/*
 * The whole pages around memory of the calling process, pinned for writing and charged: a pool
 * with one reference, in no table, that no peer reaches and that counts for no limit of pools.
 * @bytes is at least 1. No lock may be held. Return: or ERR_PTR(), as POOL_REGISTER
 */
struct rdmatensor_pool *rdmatensor_pools_pin(struct rdmatensor_context *context, u64 addr,
					     u64 bytes);
/* domain_file.c */
int rdmatensor_ioctl_domain_create(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_pool_query(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_lasting_query(struct rdmatensor_context *context, void *arg);
/* table_ioctls.c */
int rdmatensor_ioctl_table_export(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_table_open(struct rdmatensor_context *context, void *arg);
int rdmatensor_ioctl_table_close(struct rdmatensor_context *context, void *arg);
/* dump_ioctl.c */
int rdmatensor_ioctl_dump(struct rdmatensor_context *context, void *arg);
/* submit.c */
int rdmatensor_ioctl_submit(struct rdmatensor_context *context, void *arg);

#endif /* RDMATENSOR_IOCTL_H */
