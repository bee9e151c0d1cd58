// SPDX-License-Identifier: GPL-2.0
/*
 * As long as it is loaded a queue pair of soft-RoCE that has paused is not woken by what it waits
 * for: that the network device has sent its packets.
 *
 * soft-RoCE does that by itself, but rarely: its requester pauses when more than 64 packets of
 * a queue pair are with the network device, and notes it down after it has counted them. If all of
 * them have been sent between the two, nobody wakes it: the answers come, the timer for
 * retries finds nothing that lacks one, and what follows waits until something else is posted. On
 * a processor that is emulated the first pause of all takes long enough for it. For tests, in
 * a guest whose device nobody else uses; x86-64 alone, as it reads the stack.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

static atomic_t lost = ATOMIC_INIT(0);

static int lost_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&lost));
}

static const struct kernel_param_ops lost_ops = { .get = lost_get };

module_param_cb(lost, &lost_ops, NULL, 0444);
MODULE_PARM_DESC(lost, "wake-ups that were lost so far");

/* In place of a function that returns nothing */
static noinline notrace void sleeper_nothing(void)
{
	barrier();
}

static int sleeper_lose(struct kprobe *probe, struct pt_regs *regs)
{
	char caller[KSYM_NAME_LEN];

	snprintf(caller, sizeof(caller), "%ps", *(void **)kernel_stack_pointer(regs));
	if (strncmp(caller, "rxe_skb_tx_dtor", strlen("rxe_skb_tx_dtor")))
		return 0;
	atomic_inc(&lost);
	instruction_pointer_set(regs, (unsigned long)sleeper_nothing);
	return 1;
}

static struct kprobe sleeper = {
	.symbol_name = "rxe_sched_task",
	.pre_handler = sleeper_lose,
};

static int __init sleeper_init(void)
{
	return register_kprobe(&sleeper);
}

static void __exit sleeper_exit(void)
{
	unregister_kprobe(&sleeper);
}

module_init(sleeper_init);
module_exit(sleeper_exit);
MODULE_DESCRIPTION("soft-RoCE queue pairs that sleep on, for tests of rdmatensor");
MODULE_LICENSE("GPL");
