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

/* A test that has died holds nobody for longer */
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
} hold = {
	.lock = __SPIN_LOCK_UNLOCKED(hold.lock),
	.wait = __WAIT_QUEUE_HEAD_INITIALIZER(hold.wait),
};

static struct dentry *hold_file;

void rdmatensor_hold(const char *point)
{
	unsigned int turn;

	might_sleep();
	spin_lock(&hold.lock);
	if (hold.held || strcmp(hold.point, point)) {
		spin_unlock(&hold.lock);
		return;
	}
	hold.held = true;
	turn = hold.turn;
	spin_unlock(&hold.lock);

	wake_up_all(&hold.wait);
	wait_event_timeout(hold.wait, READ_ONCE(hold.turn) != turn, HOLD_LONGEST);

	spin_lock(&hold.lock);
	if (hold.turn == turn)
		hold.held = false;
	spin_unlock(&hold.lock);
}

/* Blocks until a thread is held; the point's name */
static ssize_t hold_read(struct file *file, char __user *to, size_t bytes, loff_t *pos)
{
	char text[HOLD_NAME_MAX + 1];
	int len;

	if (!*pos && wait_event_interruptible(hold.wait, READ_ONCE(hold.held)))
		return -ERESTARTSYS;
	spin_lock(&hold.lock);
	len = scnprintf(text, sizeof(text), "%s\n", hold.point);
	spin_unlock(&hold.lock);
	return simple_read_from_buffer(to, bytes, pos, text, len);
}

/* The name of a point: hold the next thread there. Who is held goes on, in any case */
static ssize_t hold_write(struct file *file, const char __user *from, size_t bytes, loff_t *pos)
{
	char text[HOLD_NAME_MAX] = "";

	if (bytes >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	spin_lock(&hold.lock);
	strscpy(hold.point, strim(text), sizeof(hold.point));
	hold.held = false;
	hold.turn++;
	spin_unlock(&hold.lock);
	wake_up_all(&hold.wait);
	return bytes;
}

static const struct file_operations hold_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = hold_read,
	.write = hold_write,
};

void rdmatensor_fault_init(void)
{
	/* A test asks for failures one by one, and knows that it did */
	fault_attr.verbose = 0;
	fault_dir = fault_create_debugfs_attr("fail_rdmatensor", NULL, &fault_attr);
	hold_file = debugfs_create_file("hold_rdmatensor", 0600, NULL, NULL, &hold_fops);
}

void rdmatensor_fault_exit(void)
{
	if (!IS_ERR(fault_dir))
		debugfs_remove_recursive(fault_dir);
	debugfs_remove(hold_file);
}

bool rdmatensor_should_fail(void)
{
	return should_fail(&fault_attr, 1);
}
