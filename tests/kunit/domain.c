// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pair that registers memory, when the device has no way back from its error state:
 * another one takes its place. By a device of ib_core's own making that makes queue pairs, and
 * does with them what a case wants.
 */
#include <kunit/test.h>
#include <linux/jiffies.h>
#include <rdma/ib_verbs.h>
#include "memory/domain.h"

#define PORT 1

/*
 * @made, @destroyed: queue pairs
 * @connected: state to which the last of them has been brought
 * @lost: those up to this number have no way back from the error state
 * @commands: to change a queue pair's state
 * @modify_error: what these end with, or 0
 * @late: the end of one is reported, after it was flushed, when it is destroyed
 * @silent: nothing that is posted completes
 */
struct hca {
	struct ib_device ibdev;
	struct kunit *test;
	struct rdmatensor_domain domain;
	struct ib_pd pd;
	struct ib_cq cq;
	struct ib_mr mr;
	u32 made;
	u32 destroyed;
	enum ib_qp_state connected;
	u32 lost;
	u32 commands;
	int modify_error;
	bool late;
	bool silent;
};

static struct hca *hca_of(const struct ib_qp *qp)
{
	return container_of(qp->device, struct hca, ibdev);
}

static int hca_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			 struct ib_udata *udata)
{
	struct hca *hca = hca_of(qp);

	KUNIT_EXPECT_PTR_EQ(hca->test, attr->qp_context, (void *)&hca->domain);
	KUNIT_EXPECT_GT(hca->test, attr->cap.max_send_wr, hca->domain.sq_depth);
	qp->qp_num = ++hca->made;
	return 0;
}

static int hca_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata)
{
	struct hca *hca = hca_of(qp);

	hca->commands++;
	if (hca->modify_error)
		return hca->modify_error;
	if (qp->qp_num <= hca->lost && attr->qp_state == IB_QPS_INIT)
		return -EINVAL;
	/* To itself, whichever it is */
	if (mask & IB_QP_DEST_QPN)
		KUNIT_EXPECT_EQ(hca->test, attr->dest_qp_num, qp->qp_num);
	hca->connected = attr->qp_state;
	return 0;
}

static int hca_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct hca *hca = hca_of(qp);
	struct ib_event event = { .event = IB_EVENT_QP_FATAL, .element.qp = qp };

	/* A driver reports what has happened before it is done with the queue pair */
	if (hca->late)
		rdmatensor_domain_qp_event(&event, qp->qp_context);
	hca->destroyed++;
	return 0;
}

static int hca_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct hca *hca = hca_of(qp);
	struct ib_wc wc = { .status = IB_WC_SUCCESS };

	/* The second one of a chain is refused */
	if (wr->next) {
		*bad = wr->next;
		return -ENOMEM;
	}
	if (hca->silent)
		return 0;
	wc.wr_cqe = wr->wr_cqe;
	wc.wr_cqe->done(qp->send_cq, &wc);
	return 0;
}

static struct hca *hca_open(struct kunit *test)
{
	struct ib_qp_init_attr attr = { .qp_type = IB_QPT_RC };
	struct rdmatensor_domain *domain;
	struct hca *hca;

	hca = ib_alloc_device(hca, ibdev);
	KUNIT_ASSERT_NOT_NULL(test, hca);
	hca->test = test;
	hca->ibdev.ops.size_ib_qp = sizeof(struct ib_qp);
	hca->ibdev.ops.create_qp = hca_create_qp;
	hca->ibdev.ops.modify_qp = hca_modify_qp;
	hca->ibdev.ops.destroy_qp = hca_destroy_qp;
	hca->ibdev.ops.post_send = hca_post_send;
	hca->ibdev.phys_port_cnt = PORT;
	hca->ibdev.port_data = kunit_kcalloc(test, PORT + 1, sizeof(*hca->ibdev.port_data),
					     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hca->ibdev.port_data);
	hca->pd.device = &hca->ibdev;
	hca->cq.device = &hca->ibdev;

	domain = &hca->domain;
	domain->ibdev = &hca->ibdev;
	domain->pd = &hca->pd;
	domain->cq = &hca->cq;
	domain->sq_depth = 2;
	domain->route.port_num = PORT;
	rdma_ah_set_port_num(&domain->route.ah_attr, PORT);
	mutex_init(&domain->lock);
	init_waitqueue_head(&domain->wait);
	attr.cap.max_send_wr = domain->sq_depth + 1;
	attr.send_cq = &hca->cq;
	attr.recv_cq = &hca->cq;
	attr.qp_context = domain;
	domain->qp = ib_create_qp(&hca->pd, &attr);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, domain->qp);
	/* It has failed, and nothing of it is in flight */
	domain->broken = true;
	return hca;
}

/* Nothing that was made is left */
static void hca_close(struct hca *hca)
{
	struct kunit *test = hca->test;

	hca->modify_error = 0;
	hca->late = false;
	KUNIT_EXPECT_EQ(test, ib_destroy_qp(hca->domain.qp), 0);
	KUNIT_EXPECT_EQ(test, hca->destroyed, hca->made);
	KUNIT_EXPECT_EQ(test, atomic_read(&hca->pd.usecnt), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&hca->cq.usecnt), 0);
	mutex_destroy(&hca->domain.lock);
	/* Not ib_core's */
	hca->ibdev.port_data = NULL;
	ib_dealloc_device(&hca->ibdev);
}

static int post(struct hca *hca, u32 nr)
{
	struct ib_reg_wr wrs[2] = { { .mr = &hca->mr }, { .mr = &hca->mr } };

	return rdmatensor_domain_post(&hca->domain, wrs, nr);
}

/* One, and that it takes so many seconds */
static int posted_within(struct hca *hca, int least, int most)
{
	unsigned long begin = jiffies;
	int ret = post(hca, 1);

	KUNIT_EXPECT_GE(hca->test, jiffies - begin, least * HZ);
	KUNIT_EXPECT_LE(hca->test, jiffies - begin, most * HZ);
	return ret;
}

static void connected_again(struct kunit *test)
{
	struct hca *hca = hca_open(test);

	KUNIT_EXPECT_EQ(test, post(hca, 1), 0);
	KUNIT_EXPECT_EQ(test, hca->connected, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hca->made, 1);
	KUNIT_EXPECT_FALSE(test, hca->domain.broken);
	hca_close(hca);
}

/* What is reported of the former one is no word about the one that has its place */
static void replaced(struct kunit *test)
{
	struct hca *hca = hca_open(test);
	struct rdmatensor_domain *domain = &hca->domain;

	hca->lost = 1;
	hca->late = true;
	KUNIT_EXPECT_EQ(test, post(hca, 1), 0);
	KUNIT_EXPECT_EQ(test, domain->qp->qp_num, 2);
	KUNIT_EXPECT_EQ(test, hca->connected, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, hca->destroyed, 1);
	KUNIT_EXPECT_FALSE(test, domain->doubtful);
	KUNIT_EXPECT_FALSE(test, domain->broken);
	/* Nor is it replaced by the next one that uses it */
	KUNIT_EXPECT_EQ(test, post(hca, 1), 0);
	KUNIT_EXPECT_EQ(test, hca->made, 2);
	hca_close(hca);
}

/* No other one can be connected, for the moment: the former one stays, to be tried again */
static void replaced_another_time(struct kunit *test)
{
	struct hca *hca = hca_open(test);
	struct rdmatensor_domain *domain = &hca->domain;

	hca->lost = 2;
	KUNIT_EXPECT_EQ(test, post(hca, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, domain->qp->qp_num, 1);
	KUNIT_EXPECT_EQ(test, hca->destroyed, 1);
	KUNIT_EXPECT_TRUE(test, domain->broken);
	KUNIT_EXPECT_EQ(test, post(hca, 1), 0);
	KUNIT_EXPECT_EQ(test, domain->qp->qp_num, 3);
	hca_close(hca);
}

/* A removal waits for it, and each command may take the time after which the driver gives up */
static void not_replaced_on_a_device_that_goes(struct kunit *test)
{
	struct hca *hca = hca_open(test);

	hca->modify_error = -ETIMEDOUT;
	hca->domain.ending = true;
	KUNIT_EXPECT_EQ(test, post(hca, 1), -ENODEV);
	KUNIT_EXPECT_EQ(test, hca->commands, 0);
	KUNIT_EXPECT_EQ(test, hca->made, 1);
	KUNIT_EXPECT_TRUE(test, hca->domain.broken);
	hca_close(hca);
}

/* Its idle keys are with it. What the device says, who connects would take for a peer's word */
static void not_replaced_where_it_is_a_channels(struct kunit *test)
{
	struct rdmatensor_domain *of = kunit_kzalloc(test, sizeof(*of), GFP_KERNEL);
	struct hca *hca;

	KUNIT_ASSERT_NOT_NULL(test, of);
	hca = hca_open(test);
	init_waitqueue_head(&of->wait);
	hca->domain.of = of;
	hca->lost = 1;
	KUNIT_EXPECT_EQ(test, post(hca, 1), -EIO);
	KUNIT_EXPECT_EQ(test, hca->made, 1);
	hca->modify_error = -EAGAIN;
	KUNIT_EXPECT_EQ(test, post(hca, 1), -EIO);
	hca_close(hca);
}

/* One that refuses a part of a chain, does not flush, and says nothing is not waited for as long */
static void drained_in_short_time(struct kunit *test)
{
	struct hca *hca = hca_open(test);
	unsigned long begin = jiffies;

	hca->domain.broken = false;
	hca->silent = true;
	hca->modify_error = -ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, post(hca, 2), -ENOMEM);
	KUNIT_EXPECT_LE(test, jiffies - begin, 15 * HZ);
	KUNIT_EXPECT_TRUE(test, hca->domain.dead);
	KUNIT_EXPECT_EQ(test, post(hca, 1), -ENODEV);
	hca_close(hca);
}

/* A device that says nothing is waited for once, and not once more by each channel */
static void silence_is_the_devices(struct kunit *test)
{
	struct rdmatensor_domain *of = kunit_kzalloc(test, sizeof(*of), GFP_KERNEL);
	struct hca *hcas[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, of);
	init_waitqueue_head(&of->wait);
	for (i = 0; i < ARRAY_SIZE(hcas); i++) {
		hcas[i] = hca_open(test);
		hcas[i]->domain.of = of;
		hcas[i]->domain.broken = false;
		hcas[i]->silent = true;
		hcas[i]->modify_error = -ETIMEDOUT;
	}
	/* Reported of one channel's, which is not flushed: that is no word about the others */
	hcas[0]->domain.doubtful = true;
	KUNIT_EXPECT_EQ(test, posted_within(hcas[0], 1, 15), -ENODEV);
	KUNIT_EXPECT_FALSE(test, of->silent);
	KUNIT_EXPECT_EQ(test, posted_within(hcas[1], 20, 60), -ENODEV);
	KUNIT_EXPECT_TRUE(test, of->silent);

	hcas[0]->domain.dead = false;
	hcas[0]->domain.broken = false;
	hcas[0]->domain.doubtful = false;
	KUNIT_EXPECT_EQ(test, posted_within(hcas[0], 1, 15), -ENODEV);
	/* And what completes ends that for all */
	hcas[1]->domain.done = true;
	hcas[1]->silent = false;
	hcas[1]->modify_error = 0;
	KUNIT_EXPECT_EQ(test, post(hcas[1], 1), 0);
	KUNIT_EXPECT_FALSE(test, of->silent);
	for (i = 0; i < ARRAY_SIZE(hcas); i++)
		hca_close(hcas[i]);
}

static struct kunit_case domain_tests[] = {
	KUNIT_CASE(connected_again),
	KUNIT_CASE(replaced),
	KUNIT_CASE(replaced_another_time),
	KUNIT_CASE(not_replaced_on_a_device_that_goes),
	KUNIT_CASE(not_replaced_where_it_is_a_channels),
	KUNIT_CASE(drained_in_short_time),
	KUNIT_CASE(silence_is_the_devices),
	{}
};

static struct kunit_suite domain_suite = {
	.name = "rdmatensor_domain",
	.test_cases = domain_tests,
};

kunit_test_suite(domain_suite);
