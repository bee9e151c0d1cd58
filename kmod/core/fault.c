// SPDX-License-Identifier: GPL-2.0
/*
 * Injected failures, and points at which a test holds a thread. The attribute, its
 * directory and the file of the holds live as long as the module.
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fault-inject.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include "core/fault.h"

/* Longest hold, in case the test has died */
#define HOLD_LONGEST (60 * HZ)
#define HOLD_NAME_MAX 32

static DECLARE_FAULT_ATTR(fault_attr);
static struct dentry *fault_dir;

/*
 * @lock guards the others
 * @wait: a thread has come to the point; a thread may go on
 * @point: where the next thread is held, empty: nowhere
 * @held: a thread is there
 * @turn: a held thread goes on when this is not what it was
 */
static struct {
	spinlock_t lock;
	wait_queue_head_t wait;
	char point[HOLD_NAME_MAX];
	bool held;
	unsigned int turn;
} fault_hold = {
	.lock = __SPIN_LOCK_UNLOCKED(fault_hold.lock),
	.wait = __WAIT_QUEUE_HEAD_INITIALIZER(fault_hold.wait),
};

static struct dentry *fault_hold_file;

void rdmatensor_hold(const char *point)
{
	unsigned int turn;

	might_sleep();
	spin_lock(&fault_hold.lock);
	if (fault_hold.held || strcmp(fault_hold.point, point)) {
		spin_unlock(&fault_hold.lock);
		return;
	}
	fault_hold.held = true;
	turn = fault_hold.turn;
	spin_unlock(&fault_hold.lock);

	wake_up_all(&fault_hold.wait);
	wait_event_timeout(fault_hold.wait, READ_ONCE(fault_hold.turn) != turn, HOLD_LONGEST);

	spin_lock(&fault_hold.lock);
	if (fault_hold.turn == turn)
		fault_hold.held = false;
	spin_unlock(&fault_hold.lock);
}

/* Blocks until a thread is held; the point's name */
static ssize_t fault_hold_read(struct file *file, char __user *to, size_t bytes, loff_t *pos)
{
	char text[HOLD_NAME_MAX + 1];
	int len;

	if (!*pos && wait_event_interruptible(fault_hold.wait, READ_ONCE(fault_hold.held)))
		return -ERESTARTSYS;
	spin_lock(&fault_hold.lock);
	len = scnprintf(text, sizeof(text), "%s\n", fault_hold.point);
	spin_unlock(&fault_hold.lock);
	return simple_read_from_buffer(to, bytes, pos, text, len);
}

/* The name of a point: the next thread is held there. A thread that is held continues */
static ssize_t fault_hold_write(struct file *file, const char __user *from, size_t bytes,
				loff_t *pos)
{
	char text[HOLD_NAME_MAX] = "";

	if (bytes >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	spin_lock(&fault_hold.lock);
	strscpy(fault_hold.point, strim(text), sizeof(fault_hold.point));
	fault_hold.held = false;
	fault_hold.turn++;
	spin_unlock(&fault_hold.lock);
	wake_up_all(&fault_hold.wait);
	return bytes;
}

static const struct file_operations fault_hold_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = fault_hold_read,
	.write = fault_hold_write,
};

void rdmatensor_fault_init(void)
{
	/* A test injects failures one by one: no need to log them */
	fault_attr.verbose = 0;
	fault_dir = fault_create_debugfs_attr("fail_rdmatensor", NULL, &fault_attr);
	fault_hold_file = debugfs_create_file("hold_rdmatensor", 0600, NULL, NULL,
					      &fault_hold_fops);
}

void rdmatensor_fault_exit(void)
{
	if (!IS_ERR(fault_dir))
		debugfs_remove_recursive(fault_dir);
	debugfs_remove(fault_hold_file);
}

bool rdmatensor_should_fail(void)
{
	return should_fail(&fault_attr, 1);
}
