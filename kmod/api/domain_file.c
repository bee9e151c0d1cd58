// SPDX-License-Identifier: GPL-2.0
/*
 * Domains as descriptors: DOMAIN_CREATE, DOMAIN_QUERY, and what START joins one by; and the
 * queries of what a domain has.
 *
 * All descriptors that are copies of one another are one file, which holds one reference to the
 * holdings. It has no operation but the query: what is done with a domain is done by contexts.
 */
#include <linux/anon_inodes.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include "api/domain_file.h"
#include "api/ioctl.h"
#include "context/config.h"
#include "context/context.h"
#include "memory/pool.h"

static int domain_file_release(struct inode *inode, struct file *file)
{
	rdmatensor_holdings_put(file->private_data);
	return 0;
}

static void domain_file_describe(struct rdmatensor_holdings *holdings,
				 struct rdmatensor_domain_query *query)
{
	struct rdmatensor_pool_info pool;
	unsigned long id = 0;

	*query = (struct rdmatensor_domain_query) {
		.size = query->size,
		.flags = READ_ONCE(holdings->gone) ? RDMATENSOR_DOMAIN_DEVICE_GONE : 0,
		.contexts = atomic_read(&holdings->nr_contexts),
		.max_pools = holdings->max_pools,
		.lasting = atomic_read(&holdings->lasting.nr),
	};
	rdmatensor_holdings_device(holdings, query->device_name, sizeof(query->device_name));
	while (rdmatensor_holdings_next_pool_info(holdings, &id, &pool)) {
		query->pools++;
		query->pool_bytes += pool.bytes;
	}
}

static long domain_file_ioctl(struct file *file, unsigned int cmd, unsigned long ptr)
{
	void __user *user = (void __user *)ptr;
	struct rdmatensor_domain_query query;
	u32 size;
	int ret;

	if (cmd != RDMATENSOR_DOMAIN_QUERY)
		return -ENOTTY;
	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < offsetofend(struct rdmatensor_domain_query, device_name))
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&query, sizeof(query), user, size);
	if (ret)
		return ret;
	if (query.__reserved)
		return -EINVAL;
	domain_file_describe(file->private_data, &query);
	/* But for its size, which may be larger */
	return copy_to_user(user + sizeof(u32), (void *)&query + sizeof(u32),
			    min_t(u32, size, sizeof(query)) - sizeof(u32)) ? -EFAULT : 0;
}

static const struct file_operations domain_file_fops = {
	.owner = THIS_MODULE,
	.release = domain_file_release,
	.unlocked_ioctl = domain_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

struct rdmatensor_holdings *rdmatensor_domain_file_get(int fd)
{
	struct rdmatensor_holdings *holdings = ERR_PTR(-EINVAL);
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	if (file->f_op == &domain_file_fops) {
		holdings = file->private_data;
		rdmatensor_holdings_get(holdings);
	}
	fput(file);
	return holdings;
}

/* A new descriptor of them. Return: its number, a negative errno */
static int domain_file_open(struct rdmatensor_holdings *holdings, int flags)
{
	struct file *file;
	int fd, ret;

	fd = get_unused_fd_flags(flags);
	if (fd < 0)
		return fd;
	rdmatensor_holdings_get(holdings);
	file = anon_inode_getfile("[rdmatensor-domain]", &domain_file_fops, holdings, O_RDWR);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		rdmatensor_holdings_put(holdings);
		goto out_put_fd;
	}
	/* Last: they are counted from here on */
	ret = rdmatensor_holdings_describe(holdings, rdmatensor_config_max_contexts());
	if (ret)
		goto out_put_file;
	fd_install(fd, file);
	return fd;

out_put_file:
	fput(file);
out_put_fd:
	put_unused_fd(fd);
	return ret;
}

int rdmatensor_ioctl_domain_create(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_domain_create *create = arg;
	int ret;

	if (create->flags & ~RDMATENSOR_DOMAIN_CLOEXEC || create->__reserved)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	if (READ_ONCE(context->gone))
		return -ENODEV;
	ret = domain_file_open(context->holdings,
			       create->flags & RDMATENSOR_DOMAIN_CLOEXEC ? O_CLOEXEC : 0);
	if (ret < 0)
		return ret;
	create->out_fd = ret;
	return 0;
}

static void pool_query_fill(const struct rdmatensor_pool_info *pool,
			    struct rdmatensor_pool_query *query)
{
	*query = (struct rdmatensor_pool_query) {
		.size = query->size,
		.pool_id = pool->id,
		.flags = query->flags,
		.out_flags = (pool->mappable ? RDMATENSOR_POOL_MAPPABLE : 0) |
			     (pool->writable ? RDMATENSOR_POOL_WRITABLE : 0),
		.peers = pool->peers,
		.keys = pool->segments,
		.bytes = pool->bytes,
		.out_mmap_offset = pool->mappable ? rdmatensor_pool_mmap_offset(pool->id) : 0,
	};
	strscpy(query->kind, pool->memory, sizeof(query->kind));
}

int rdmatensor_ioctl_pool_query(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_pool_query *query = arg;
	unsigned long id = query->pool_id;
	struct rdmatensor_pool_info pool;
	bool found;

	if (query->flags & ~RDMATENSOR_POOL_NEXT)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	found = query->flags & RDMATENSOR_POOL_NEXT ?
		rdmatensor_holdings_next_pool_info(context->holdings, &id, &pool) :
		rdmatensor_holdings_pool_info(context->holdings, query->pool_id, &pool);
	if (!found)
		return -ENOENT;
	pool_query_fill(&pool, query);
	return 0;
}

static void lasting_query_fill(const struct rdmatensor_lasting_info *info,
			       struct rdmatensor_lasting_query *query)
{
	*query = (struct rdmatensor_lasting_query) {
		.size = query->size,
		.flags = (info->meta.is_dead ? RDMATENSOR_LASTING_DEAD : 0) |
			 (info->copied ? RDMATENSOR_LASTING_COPIED : 0) |
			 (info->withdrawing ? RDMATENSOR_LASTING_WITHDRAWING : 0) |
			 (info->retired ? RDMATENSOR_LASTING_RETIRED : 0) |
			 (info->hidden ? RDMATENSOR_LASTING_HIDDEN : 0),
		.cursor = query->cursor,
		.step_id = info->step_id,
		.pool_id = info->pool_id,
		.data_type = info->meta.data_type,
		.offset = info->offset,
		.bytes = info->meta.bytes,
		.ndims = info->meta.ndims,
		.status = info->error,
		.name_len = info->name_len,
	};
	memcpy(query->dims, info->meta.dims, sizeof(query->dims));
	memcpy(query->name, info->name, info->name_len);
}

int rdmatensor_ioctl_lasting_query(struct rdmatensor_context *context, void *arg)
{
	struct rdmatensor_lasting_query *query = arg;
	struct rdmatensor_lasting_info *info;
	unsigned long id = query->cursor;
	bool found;

	if (query->__reserved || query->cursor > U32_MAX)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	info = kzalloc(sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	found = rdmatensor_lasting_next(&context->holdings->lasting, &id, info);
	if (found) {
		query->cursor = id;
		lasting_query_fill(info, query);
	}
	kfree(info);
	return found ? 0 : -ENOENT;
}
