// SPDX-License-Identifier: GPL-2.0
/*
 * The file operations of /dev/rdmatensor. One table of ioctls: how long the
 * struct is, how long it was in its first version, whether it is written back.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include "api/ioctl.h"
#include "api/uapi.h"
#include "context/context.h"

/* Written back: never, on success, also with an error (its text) */
enum uapi_out {
	UAPI_IN,
	UAPI_OUT,
	UAPI_OUT_ALWAYS,
};

struct uapi_ioctl {
	unsigned int cmd;
	u32 size;
	u32 min_size;
	enum uapi_out out;
	int (*fn)(struct rdmatensor_context *context, void *arg);
};

union uapi_arg {
	struct rdmatensor_query query;
	struct rdmatensor_start start;
	struct rdmatensor_configure configure;
	struct rdmatensor_stats stats;
	struct rdmatensor_pool_create pool_create;
	struct rdmatensor_pool_register pool_register;
	struct rdmatensor_pool_import pool_import;
	struct rdmatensor_pool_destroy pool_destroy;
	struct rdmatensor_pool_alloc pool_alloc;
	struct rdmatensor_domain_create domain_create;
	struct rdmatensor_pool_query pool_query;
	struct rdmatensor_lasting_query lasting_query;
	struct rdmatensor_connect connect;
	struct rdmatensor_disconnect disconnect;
	struct rdmatensor_channel_query channel_query;
	struct rdmatensor_step_abort step_abort;
	struct rdmatensor_submit submit;
	struct rdmatensor_table_export table_export;
	struct rdmatensor_table_open table_open;
	struct rdmatensor_table_close table_close;
	struct rdmatensor_status_text status_text;
	struct rdmatensor_dump dump;
};

#define UAPI_IOCTL(_cmd, _fn, _struct, _last, _out) \
	[_IOC_NR(_cmd) - RDMATENSOR_CMD_BASE] = { \
		.cmd = _cmd, \
		.size = sizeof(struct _struct) + \
			BUILD_BUG_ON_ZERO(sizeof(union uapi_arg) < sizeof(struct _struct)), \
		.min_size = offsetofend(struct _struct, _last), \
		.out = _out, \
		.fn = rdmatensor_ioctl_##_fn, \
	}

static const struct uapi_ioctl uapi_ioctls[] = {
	UAPI_IOCTL(RDMATENSOR_QUERY, query, rdmatensor_query, __reserved, UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_START, start, rdmatensor_start, cause, UAPI_OUT_ALWAYS),
	UAPI_IOCTL(RDMATENSOR_CONFIGURE, configure, rdmatensor_configure, __reserved, UAPI_IN),
	UAPI_IOCTL(RDMATENSOR_STATS, stats, rdmatensor_stats, counters_uptr, UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_POOL_CREATE, pool_create, rdmatensor_pool_create,
		   out_mmap_offset, UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_POOL_DESTROY, pool_destroy, rdmatensor_pool_destroy, pool_id,
		   UAPI_IN),
	UAPI_IOCTL(RDMATENSOR_POOL_ALLOC, pool_alloc, rdmatensor_pool_alloc, out_offset,
		   UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_CONNECT, connect, rdmatensor_connect, cause, UAPI_OUT_ALWAYS),
	UAPI_IOCTL(RDMATENSOR_DISCONNECT, disconnect, rdmatensor_disconnect, channel, UAPI_IN),
	UAPI_IOCTL(RDMATENSOR_CHANNEL_QUERY, channel_query, rdmatensor_channel_query,
		   responses, UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_STEP_ABORT, step_abort, rdmatensor_step_abort, __reserved,
		   UAPI_IN),
	UAPI_IOCTL(RDMATENSOR_SUBMIT, submit, rdmatensor_submit, out_error, UAPI_OUT_ALWAYS),
	UAPI_IOCTL(RDMATENSOR_TABLE_EXPORT, table_export, rdmatensor_table_export, out_table,
		   UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_TABLE_OPEN, table_open, rdmatensor_table_open, cause,
		   UAPI_OUT_ALWAYS),
	UAPI_IOCTL(RDMATENSOR_TABLE_CLOSE, table_close, rdmatensor_table_close, table, UAPI_IN),
	UAPI_IOCTL(RDMATENSOR_STATUS_TEXT, status_text, rdmatensor_status_text, __reserved,
		   UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_POOL_REGISTER, pool_register, rdmatensor_pool_register, cause,
		   UAPI_OUT_ALWAYS),
	UAPI_IOCTL(RDMATENSOR_POOL_IMPORT, pool_import, rdmatensor_pool_import, cause,
		   UAPI_OUT_ALWAYS),
	UAPI_IOCTL(RDMATENSOR_DOMAIN_CREATE, domain_create, rdmatensor_domain_create, __reserved,
		   UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_POOL_QUERY, pool_query, rdmatensor_pool_query, kind, UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_LASTING_QUERY, lasting_query, rdmatensor_lasting_query, name,
		   UAPI_OUT),
	UAPI_IOCTL(RDMATENSOR_DUMP, dump, rdmatensor_dump, __reserved, UAPI_OUT),
};

static int uapi_open(struct inode *inode, struct file *file)
{
	struct rdmatensor_context *context = rdmatensor_context_open();

	if (IS_ERR(context))
		return PTR_ERR(context);
	file->private_data = context;
	return nonseekable_open(inode, file);
}

static int uapi_release(struct inode *inode, struct file *file)
{
	rdmatensor_context_close(file->private_data);
	return 0;
}

/* All but the size, which is the process's and may be larger */
static int uapi_copy_out(void __user *user, const union uapi_arg *arg, u32 size)
{
	if (copy_to_user(user + sizeof(u32), (void *)arg + sizeof(u32), size - sizeof(u32)))
		return -EFAULT;
	return 0;
}

static long uapi_ioctl(struct file *file, unsigned int cmd, unsigned long ptr)
{
	struct rdmatensor_context *context = file->private_data;
	void __user *user = (void __user *)ptr;
	const struct uapi_ioctl *ioctl;
	unsigned int nr = _IOC_NR(cmd);
	union uapi_arg arg;
	u32 size;
	int ret;

	if (nr < RDMATENSOR_CMD_BASE ||
	    nr - RDMATENSOR_CMD_BASE >= ARRAY_SIZE(uapi_ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr - RDMATENSOR_CMD_BASE, ARRAY_SIZE(uapi_ioctls));
	ioctl = &uapi_ioctls[nr];
	/* There are numbers that other files have */
	if (ioctl->cmd != cmd)
		return -ENOTTY;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < ioctl->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&arg, ioctl->size, user, size);
	if (ret)
		return ret;

	/* An argument that cannot be written back fails before anything has changed */
	if (ioctl->out != UAPI_IN && uapi_copy_out(user, &arg, min(size, ioctl->size)))
		return -EFAULT;

	ret = ioctl->fn(context, &arg);
	if (ioctl->out == UAPI_OUT_ALWAYS || (ioctl->out == UAPI_OUT && !ret)) {
		if (uapi_copy_out(user, &arg, min(size, ioctl->size)))
			return ret ?: -EFAULT;
	}
	return ret;
}

static __poll_t uapi_poll(struct file *file, struct poll_table_struct *table)
{
	struct rdmatensor_context *context = file->private_data;

	/* Before START, too: epoll waits where it has waited when the descriptor was added */
	poll_wait(file, &context->poll_wait, table);
	if (!rdmatensor_context_started(context))
		return EPOLLERR;
	return rdmatensor_ring_poll(&context->core.ring);
}

static int uapi_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rdmatensor_context *context = file->private_data;
	struct rdmatensor_pool *pool;
	int ret;

	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	if (vma->vm_pgoff == RDMATENSOR_MMAP_RING >> PAGE_SHIFT)
		return rdmatensor_ring_mmap(&context->core.ring, vma);
	/* See rdmatensor_pool_mmap_offset() */
	pool = vma->vm_pgoff > RDMATENSOR_POOL_ID_MAX ? NULL :
	       rdmatensor_context_pool(context, vma->vm_pgoff);
	if (!pool)
		return -ENOENT;
	ret = rdmatensor_pool_mmap(pool, vma);
	rdmatensor_pool_put(pool);
	return ret;
}

const struct file_operations rdmatensor_fops = {
	.owner = THIS_MODULE,
	.open = uapi_open,
	.release = uapi_release,
	.unlocked_ioctl = uapi_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = uapi_poll,
	.mmap = uapi_mmap,
};
