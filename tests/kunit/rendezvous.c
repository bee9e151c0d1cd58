// SPDX-License-Identifier: GPL-2.0
/*
 * The rendezvous table. Most tests are scenarios: tables of steps, each a call
 * and everything that it must bring about. Tensors are named by capitals and
 * waiters by small letters; "aAbA" is a list of matches in which a and b have
 * got A. At a scenario's end the table must be empty.
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include "core/rendezvous.h"
#include "core/rendezvous_table.h"

#define LETTERS 8

enum op {
	END, PUBLISH, REQUEST, CANCEL, DELIVER, GIVE_BACK, WITHDRAW, ABORT, STATUS, DRAIN,
};

struct step {
	enum op op;
	int line;
	const char *who;	/* tensor or waiter */
	const char *name;
	s64 step_id;
	u32 uses;
	bool newest, now;	/* what a request wants */
	int ret;
	int status;		/* a tensor's end, an abort's, or a request's */
	const char *tensors;	/* matched or released */
	const char *waiters;
};

#define STEP(...) { .line = __LINE__, __VA_ARGS__ }

#define PUBLISH(_who, _name, _step_id, _uses, _ret, _matches) \
	STEP(.op = PUBLISH, .who = #_who, .name = _name, .step_id = _step_id, \
	     .uses = _uses, .ret = _ret, .tensors = _matches)
/* ret 0: has got the tensor _got; 1: waits */
#define REQUEST(_who, _name, _step_id, _ret, _got) \
	STEP(.op = REQUEST, .who = #_who, .name = _name, .step_id = _step_id, \
	     .ret = _ret, .tensors = _got)
/* The newest step from _step_id on */
#define NEWEST(_who, _name, _step_id, _ret, _got) \
	STEP(.op = REQUEST, .who = #_who, .name = _name, .step_id = _step_id, \
	     .newest = true, .ret = _ret, .tensors = _got)
/* At once, or _status */
#define NOW(_who, _name, _step_id, _newest, _status) \
	STEP(.op = REQUEST, .who = #_who, .name = _name, .step_id = _step_id, \
	     .newest = _newest, .now = true, .ret = -ECANCELED, .status = _status)
#define CANCEL(_who, _ret) \
	STEP(.op = CANCEL, .who = #_who, .ret = _ret)
/* ret 1: it is released, with _status */
#define DELIVER(_who, _ret, _status) \
	STEP(.op = DELIVER, .who = #_who, .ret = _ret, .status = _status)
#define GIVE_BACK(_who, _ret, _status, _matches) \
	STEP(.op = GIVE_BACK, .who = #_who, .ret = _ret, .status = _status, \
	     .tensors = _matches)
#define WITHDRAW(_name, _step_id, _ret, _found, _released, _status) \
	STEP(.op = WITHDRAW, .name = _name, .step_id = _step_id, .ret = _ret, \
	     .tensors = _found, .uses = _released, .status = _status)
#define ABORT(_step_id, _status, _released, _waiters) \
	STEP(.op = ABORT, .step_id = _step_id, .status = _status, \
	     .tensors = _released, .waiters = _waiters)
#define STATUS(_step_id, _status) \
	STEP(.op = STATUS, .step_id = _step_id, .status = _status)
#define DRAIN(_released) \
	STEP(.op = DRAIN, .tensors = _released)

/* For this step, and it waits */
static int request(struct rdmatensor_rendezvous *rdv, struct rdmatensor_waiter *waiter,
		   const char *name, u16 name_len, s64 step_id, gfp_t gfp)
{
	const struct rdmatensor_wanted wanted = {
		.name = name, .name_len = name_len, .step_id = step_id,
	};

	return rdmatensor_rendezvous_request(rdv, waiter, &wanted, gfp);
}

static const struct scenario {
	const char *name;
	struct step steps[20];
} scenarios[] = {
	{ "publish, then request", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		DELIVER(A, 1, 0),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
	} },
	{ "request, then publish", {
		REQUEST(a, "x", 1, 1, ""),
		PUBLISH(A, "x", 1, 1, 0, "aA"),
		DELIVER(A, 1, 0),
	} },
	{ "who waits longest is first", {
		REQUEST(a, "x", 1, 1, ""),
		REQUEST(b, "x", 1, 1, ""),
		REQUEST(c, "x", 1, 1, ""),
		PUBLISH(A, "x", 1, 1, 0, "aA"),
		PUBLISH(B, "x", 1, 1, 0, "bB"),
		PUBLISH(C, "x", 1, 1, 0, "cC"),
		DELIVER(B, 1, 0),
		DELIVER(C, 1, 0),
		DELIVER(A, 1, 0),
	} },
	{ "names and steps are apart", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		PUBLISH(B, "x", 2, 1, 0, ""),
		PUBLISH(C, "xx", 1, 1, 0, ""),
		PUBLISH(D, "x", -1, 1, 0, ""),
		PUBLISH(E, "x", 1LL << 32, 1, 0, ""),
		REQUEST(a, "y", 1, 1, ""),
		REQUEST(b, "xx", 2, 1, ""),
		REQUEST(c, "xx", 1, 0, "C"),
		REQUEST(d, "x", 2, 0, "B"),
		REQUEST(e, "x", 1, 0, "A"),
		REQUEST(f, "x", 1LL << 32, 0, "E"),
		REQUEST(g, "x", -1, 0, "D"),
		DELIVER(A, 1, 0), DELIVER(B, 1, 0), DELIVER(C, 1, 0), DELIVER(D, 1, 0),
		DELIVER(E, 1, 0),
		CANCEL(a, 1), CANCEL(b, 1),
	} },
	{ "the newest step of several", {
		PUBLISH(A, "x", 3, 1, 0, ""),
		PUBLISH(B, "x", -7, 1, 0, ""),
		PUBLISH(C, "x", 9, 1, 0, ""),
		PUBLISH(D, "xx", 11, 1, 0, ""),
		NEWEST(a, "x", 4, 0, "C"),
		/* It is used up: the next newest one */
		NEWEST(b, "x", 4, 1, ""),
		NEWEST(c, "x", 3, 0, "A"),
		NEWEST(d, "x", S64_MIN, 0, "B"),
		NEWEST(e, "y", S64_MIN, 1, ""),
		GIVE_BACK(A, 0, 0, ""),
		NEWEST(f, "x", 4, 1, ""),
		NEWEST(g, "x", 0, 0, "A"),
		DELIVER(A, 1, 0), DELIVER(B, 1, 0), DELIVER(C, 1, 0),
		CANCEL(b, 1), CANCEL(e, 1), CANCEL(f, 1),
		DRAIN("D"),
	} },
	/* Whose hashes are the same */
	{ "the newest step of two names", {
		PUBLISH(A, "uxij", 3, 1, 0, ""),
		PUBLISH(B, "pfkv", 5, 1, 0, ""),
		PUBLISH(C, "pfkv", 4, 1, 0, ""),
		NEWEST(a, "uxij", 0, 0, "A"),
		NEWEST(b, "uxij", 0, 1, ""),
		NEWEST(c, "pfkv", 0, 0, "B"),
		DELIVER(A, 1, 0), DELIVER(B, 1, 0),
		CANCEL(b, 1),
		DRAIN("C"),
	} },
	{ "waiters for the newest step, with bounds of their own", {
		NEWEST(a, "x", 5, 1, ""),
		NEWEST(b, "x", 2, 1, ""),
		NEWEST(c, "x", 1, 1, ""),
		REQUEST(d, "x", 5, 1, ""),
		PUBLISH(A, "x", 0, 1, 0, ""),
		PUBLISH(B, "x", 2, 1, 0, "cB"),
		/* Who asks for the step itself is before who takes any */
		PUBLISH(C, "x", 5, 1, 0, "dC"),
		PUBLISH(D, "x", 6, 0, 0, "bDaD"),
		DELIVER(B, 1, 0), DELIVER(C, 1, 0), DELIVER(D, 0, 0), DELIVER(D, 0, 0),
		DRAIN("AD"),
	} },
	{ "waiters for the newest step, more than there are tensors", {
		NEWEST(a, "x", 3, 1, ""),
		NEWEST(b, "x", 2, 1, ""),
		NEWEST(c, "x", 2, 1, ""),
		NEWEST(d, "x", 9, 1, ""),
		NEWEST(e, "xx", 0, 1, ""),
		/* The least bound first, of the same the oldest */
		PUBLISH(A, "x", 5, 2, 0, "bAcA"),
		CANCEL(d, 1),
		PUBLISH(B, "x", 2, 1, 0, ""),
		PUBLISH(C, "x", 4, 1, 0, "aC"),
		DELIVER(A, 0, 0), DELIVER(A, 1, 0), DELIVER(C, 1, 0),
		CANCEL(e, 1),
		DRAIN("B"),
	} },
	{ "what comes back is for who waits for any step", {
		PUBLISH(A, "x", 2, 1, 0, ""),
		REQUEST(a, "x", 2, 0, "A"),
		NEWEST(b, "x", 3, 1, ""),
		NEWEST(c, "x", 1, 1, ""),
		GIVE_BACK(A, 0, 0, "cA"),
		DELIVER(A, 1, 0),
		CANCEL(b, 1),
	} },
	{ "an abort ends its step, and no wait for the newest", {
		PUBLISH(A, "x", 4, 0, 0, ""),
		PUBLISH(B, "x", 2, 1, 0, ""),
		ABORT(4, -EIO, "", ""),
		NEWEST(a, "x", 3, 1, ""),
		NEWEST(b, "x", 0, 0, "B"),
		NEWEST(c, "y", 0, 1, ""),
		/* Which is where all that wait for any step are */
		ABORT(0, -EIO, "", ""),
		PUBLISH(C, "y", 1, 1, 0, "cC"),
		DELIVER(B, 1, 0), DELIVER(C, 1, 0),
		CANCEL(a, 1),
		DRAIN("A"),
	} },
	{ "at once or not at all", {
		NOW(a, "x", 1, false, -ENOENT),
		NOW(a, "x", 1, true, -ENOENT),
		REQUEST(b, "x", 1, 1, ""),
		NOW(a, "x", 1, false, -ENOENT),
		PUBLISH(A, "x", 1, 1, 0, "bA"),
		NOW(a, "x", 1, false, -ENOENT),
		GIVE_BACK(A, 0, 0, ""),
		NOW(a, "x", 2, true, -ENOENT),
		REQUEST(c, "x", 1, 0, "A"),
		DELIVER(A, 1, 0),
	} },
	{ "three uses, published first", {
		PUBLISH(A, "x", 1, 3, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		DELIVER(A, 0, 0),
		REQUEST(b, "x", 1, 0, "A"),
		REQUEST(c, "x", 1, 0, "A"),
		REQUEST(d, "x", 1, 1, ""),
		DELIVER(A, 0, 0),
		DELIVER(A, 1, 0),
		CANCEL(d, 1),
	} },
	{ "three uses, four wait", {
		REQUEST(a, "x", 1, 1, ""),
		REQUEST(b, "x", 1, 1, ""),
		REQUEST(c, "x", 1, 1, ""),
		REQUEST(d, "x", 1, 1, ""),
		PUBLISH(A, "x", 1, 3, 0, "aAbAcA"),
		DELIVER(A, 0, 0),
		DELIVER(A, 0, 0),
		DELIVER(A, 1, 0),
		PUBLISH(B, "x", 1, 2, 0, "dB"),
		REQUEST(e, "x", 1, 0, "B"),
		DELIVER(B, 0, 0),
		DELIVER(B, 1, 0),
	} },
	{ "until withdrawn", {
		REQUEST(a, "x", 1, 1, ""),
		REQUEST(b, "x", 1, 1, ""),
		PUBLISH(A, "x", 1, 0, 0, "aAbA"),
		REQUEST(c, "x", 1, 0, "A"),
		DELIVER(A, 0, 0),
		DELIVER(A, 0, 0),
		DELIVER(A, 0, 0),
		REQUEST(d, "x", 1, 0, "A"),
		DELIVER(A, 0, 0),
		PUBLISH(B, "x", 1, 1, -EEXIST, ""),
		WITHDRAW("x", 1, 0, "A", 1, 0),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
	} },
	{ "the most uses", {
		PUBLISH(A, "x", 1, U32_MAX, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		DELIVER(A, 0, 0),
		WITHDRAW("x", 1, 0, "A", 1, -ECANCELED),
	} },
	{ "offered already", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		PUBLISH(B, "x", 1, 1, -EEXIST, ""),
		PUBLISH(B, "x", 1, 0, -EEXIST, ""),
		REQUEST(a, "x", 1, 0, "A"),
		DELIVER(A, 1, 0),
		PUBLISH(B, "x", 1, 1, 0, ""),
		WITHDRAW("x", 1, 0, "B", 1, -ECANCELED),
	} },
	{ "offered already, used in part", {
		PUBLISH(A, "x", 1, 2, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, -EEXIST, ""),
		DELIVER(A, 0, 0),
		PUBLISH(B, "x", 1, 1, -EEXIST, ""),
		REQUEST(b, "x", 1, 0, "A"),
		DELIVER(A, 1, 0),
	} },
	{ "published again while on its way", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		PUBLISH(C, "x", 1, 1, -EEXIST, ""),
		REQUEST(b, "x", 1, 0, "B"),
		PUBLISH(C, "x", 1, 1, 0, ""),
		DELIVER(B, 1, 0),
		DELIVER(A, 1, 0),
		REQUEST(c, "x", 1, 0, "C"),
		DELIVER(C, 1, 0),
	} },
	{ "returned and asked for again", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		GIVE_BACK(A, 0, 0, ""),
		PUBLISH(B, "x", 1, 1, -EEXIST, ""),
		REQUEST(b, "x", 1, 0, "A"),
		GIVE_BACK(A, 0, 0, ""),
		REQUEST(c, "x", 1, 0, "A"),
		DELIVER(A, 1, 0),
	} },
	{ "returned while others wait", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 1, ""),
		REQUEST(c, "x", 1, 1, ""),
		GIVE_BACK(A, 0, 0, "bA"),
		GIVE_BACK(A, 0, 0, "cA"),
		DELIVER(A, 1, 0),
	} },
	{ "returned, before what is newer", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		GIVE_BACK(A, 0, 0, ""),
		PUBLISH(C, "x", 1, 1, -EEXIST, ""),
		REQUEST(b, "x", 1, 0, "A"),
		PUBLISH(C, "x", 1, 1, -EEXIST, ""),
		REQUEST(c, "x", 1, 0, "B"),
		DELIVER(A, 1, 0),
		DELIVER(B, 1, 0),
	} },
	{ "two returned", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		REQUEST(b, "x", 1, 0, "B"),
		GIVE_BACK(B, 0, 0, ""),
		GIVE_BACK(A, 0, 0, ""),
		REQUEST(c, "x", 1, 0, "A"),
		REQUEST(d, "x", 1, 0, "B"),
		REQUEST(e, "x", 1, 1, ""),
		REQUEST(f, "x", 1, 1, ""),
		GIVE_BACK(B, 0, 0, "eB"),
		GIVE_BACK(A, 0, 0, "fA"),
		DELIVER(A, 1, 0),
		DELIVER(B, 1, 0),
	} },
	{ "some of several uses returned", {
		PUBLISH(A, "x", 1, 2, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 0, "A"),
		GIVE_BACK(A, 0, 0, ""),
		REQUEST(c, "x", 1, 0, "A"),
		REQUEST(d, "x", 1, 1, ""),
		DELIVER(A, 0, 0),
		GIVE_BACK(A, 0, 0, "dA"),
		DELIVER(A, 1, 0),
	} },
	{ "all of several uses returned", {
		REQUEST(a, "x", 1, 1, ""),
		REQUEST(b, "x", 1, 1, ""),
		PUBLISH(A, "x", 1, 2, 0, "aAbA"),
		PUBLISH(B, "x", 1, 2, 0, ""),
		REQUEST(c, "x", 1, 0, "B"),
		GIVE_BACK(A, 0, 0, ""),
		GIVE_BACK(A, 0, 0, ""),
		GIVE_BACK(B, 0, 0, ""),
		REQUEST(d, "x", 1, 0, "B"),
		REQUEST(e, "x", 1, 0, "B"),
		REQUEST(f, "x", 1, 0, "A"),
		REQUEST(g, "x", 1, 0, "A"),
		REQUEST(h, "x", 1, 1, ""),
		DELIVER(A, 0, 0), DELIVER(A, 1, 0),
		DELIVER(B, 0, 0), DELIVER(B, 1, 0),
		CANCEL(h, 1),
	} },
	{ "returned, offered until withdrawn", {
		PUBLISH(A, "x", 1, 0, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 0, "A"),
		GIVE_BACK(A, 0, 0, ""),
		REQUEST(c, "x", 1, 0, "A"),
		DELIVER(A, 0, 0),
		GIVE_BACK(A, 0, 0, ""),
		WITHDRAW("x", 1, 0, "A", 1, 0),
	} },

	{ "withdraw what is not there", {
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
		PUBLISH(A, "x", 1, 1, 0, ""),
		WITHDRAW("x", 2, -ENOENT, "", 0, 0),
		WITHDRAW("y", 1, -ENOENT, "", 0, 0),
		WITHDRAW("x", 1, 0, "A", 1, -ECANCELED),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
		REQUEST(a, "x", 1, 1, ""),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
		CANCEL(a, 1),
	} },
	{ "withdrawn on its way, delivered", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		REQUEST(b, "x", 1, 1, ""),
		DELIVER(A, 1, -ECANCELED),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
		CANCEL(b, 1),
	} },
	{ "withdrawn on its way, returned", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 1, ""),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		GIVE_BACK(A, 1, -ECANCELED, ""),
		PUBLISH(A, "x", 1, 1, 0, "bA"),
		DELIVER(A, 1, 0),
	} },
	{ "withdrawn on its way, twice returned", {
		PUBLISH(A, "x", 1, 2, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 0, "A"),
		REQUEST(c, "x", 1, 1, ""),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		GIVE_BACK(A, 0, 0, ""),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		GIVE_BACK(A, 1, -ECANCELED, ""),
		CANCEL(c, 1),
	} },
	{ "withdrawn with uses left", {
		PUBLISH(A, "x", 1, 3, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		REQUEST(b, "x", 1, 1, ""),
		DELIVER(A, 1, -ECANCELED),
		CANCEL(b, 1),
	} },
	{ "offered until withdrawn, withdrawn on its way", {
		PUBLISH(A, "x", 1, 0, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 0, "A"),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		REQUEST(c, "x", 1, 1, ""),
		GIVE_BACK(A, 0, 0, ""),
		DELIVER(A, 1, 0),
		CANCEL(c, 1),
	} },
	{ "published again while the withdrawn one is read", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		PUBLISH(B, "x", 1, 1, 0, ""),
		GIVE_BACK(A, 1, -ECANCELED, ""),
		REQUEST(b, "x", 1, 0, "B"),
		DELIVER(B, 1, 0),
	} },
	{ "what is offered is withdrawn before what is on its way", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		WITHDRAW("x", 1, 0, "B", 1, -ECANCELED),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		PUBLISH(B, "x", 1, 1, 0, ""),
		WITHDRAW("x", 1, 0, "B", 1, -ECANCELED),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		DELIVER(A, 1, -ECANCELED),
	} },
	{ "of several that are offered the last is withdrawn first", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		GIVE_BACK(A, 0, 0, ""),
		WITHDRAW("x", 1, 0, "B", 1, -ECANCELED),
		WITHDRAW("x", 1, 0, "A", 1, -ECANCELED),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
	} },
	{ "of several on their way the last is withdrawn first", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		REQUEST(b, "x", 1, 0, "B"),
		PUBLISH(C, "x", 1, 1, 0, ""),
		REQUEST(c, "x", 1, 0, "C"),
		WITHDRAW("x", 1, 0, "C", 0, 0),
		WITHDRAW("x", 1, 0, "B", 0, 0),
		DELIVER(A, 1, 0),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		GIVE_BACK(C, 1, -ECANCELED, ""),
		DELIVER(B, 1, -ECANCELED),
	} },

	{ "cancel", {
		CANCEL(a, 0),
		REQUEST(a, "x", 1, 1, ""),
		REQUEST(b, "x", 1, 1, ""),
		CANCEL(a, 1),
		CANCEL(a, 0),
		PUBLISH(A, "x", 1, 1, 0, "bA"),
		CANCEL(b, 0),
		DELIVER(A, 1, 0),
		CANCEL(b, 0),
		REQUEST(a, "x", 1, 1, ""),
		CANCEL(a, 1),
	} },
	{ "cancel after an abort", {
		REQUEST(a, "x", 1, 1, ""),
		ABORT(1, -EIO, "", "a"),
		CANCEL(a, 0),
	} },

	{ "abort what is offered, waits, and is of other steps", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		PUBLISH(B, "y", 1, 3, 0, ""),
		PUBLISH(C, "x", 2, 1, 0, ""),
		REQUEST(a, "z", 1, 1, ""),
		REQUEST(b, "z", 1, 1, ""),
		REQUEST(c, "z", 2, 1, ""),
		ABORT(1, -EIO, "BA", "ab"),
		STATUS(1, -EIO),
		STATUS(2, 0),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
		REQUEST(d, "x", 2, 0, "C"),
		DELIVER(C, 1, 0),
		CANCEL(c, 1),
	} },
	{ "an aborted step takes nothing in", {
		STATUS(7, 0),
		ABORT(7, -ENOSPC, "", ""),
		STATUS(7, -ENOSPC),
		PUBLISH(A, "x", 7, 1, -ENOSPC, ""),
		PUBLISH(A, "x", 7, 0, -ENOSPC, ""),
		REQUEST(a, "x", 7, -ECANCELED, ""),
		WITHDRAW("x", 7, -ENOENT, "", 0, 0),
		ABORT(7, -EBUSY, "", ""),
		STATUS(7, -EBUSY),
		PUBLISH(A, "x", 7, 1, -EBUSY, ""),
		ABORT(7, -ENOMEM, "", ""),
		PUBLISH(A, "x", 7, 1, -ENOMEM, ""),
	} },
	{ "aborted on its way, delivered", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 1, ""),
		ABORT(1, -EIO, "", "b"),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		DELIVER(A, 1, -EIO),
	} },
	{ "aborted on its way, returned", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		ABORT(1, -EIO, "", ""),
		GIVE_BACK(A, 1, -EIO, ""),
	} },
	{ "aborted with uses left", {
		PUBLISH(A, "x", 1, 3, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 0, "A"),
		ABORT(1, -EIO, "", ""),
		GIVE_BACK(A, 0, 0, ""),
		DELIVER(A, 1, -EIO),
	} },
	{ "aborted after it was withdrawn", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		ABORT(1, -EIO, "", ""),
		DELIVER(A, 1, -ECANCELED),
	} },
	{ "aborted, several on their way and one returned", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		PUBLISH(B, "x", 1, 1, 0, ""),
		REQUEST(b, "x", 1, 0, "B"),
		PUBLISH(C, "x", 1, 1, 0, ""),
		GIVE_BACK(A, 0, 0, ""),
		ABORT(1, -EIO, "AC", ""),
		GIVE_BACK(B, 1, -EIO, ""),
	} },
	{ "aborted, offered until withdrawn", {
		PUBLISH(A, "x", 1, 0, 0, ""),
		ABORT(1, -EIO, "", ""),
		REQUEST(a, "x", 1, -ECANCELED, ""),
		ABORT(1, -EIO, "", ""),
		WITHDRAW("x", 1, 0, "A", 1, 0),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
	} },
	{ "aborted, offered until withdrawn, on its way", {
		PUBLISH(A, "x", 1, 0, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		REQUEST(b, "x", 1, 0, "A"),
		ABORT(1, -EIO, "", ""),
		DELIVER(A, 0, 0),
		WITHDRAW("x", 1, 0, "A", 0, 0),
		WITHDRAW("x", 1, -EALREADY, "", 0, 0),
		GIVE_BACK(A, 1, 0, ""),
	} },
	{ "aborted, offered until withdrawn, idle since", {
		PUBLISH(A, "x", 1, 0, 0, ""),
		REQUEST(a, "x", 1, 0, "A"),
		ABORT(1, -EIO, "", ""),
		GIVE_BACK(A, 0, 0, ""),
		WITHDRAW("x", 1, 0, "A", 1, 0),
	} },

	{ "drain nothing", {
		DRAIN(""),
	} },
	{ "drain", {
		PUBLISH(A, "x", 1, 1, 0, ""),
		PUBLISH(B, "x", 2, 0, 0, ""),
		PUBLISH(C, "y", 2, 5, 0, ""),
		PUBLISH(D, "x", 3, 0, 0, ""),
		PUBLISH(E, "x", 4, 2, 0, ""),
		REQUEST(a, "x", 4, 0, "E"),
		DELIVER(E, 0, 0),
		ABORT(3, -EIO, "", ""),
		DRAIN("ABCDE"),
		WITHDRAW("x", 1, -ENOENT, "", 0, 0),
	} },
	{ "drain leaves who waits", {
		REQUEST(a, "x", 1, 1, ""),
		DRAIN(""),
		CANCEL(a, 1),
	} },
};

static void scenario_name(const struct scenario *s, char *desc)
{
	strscpy(desc, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(scenario, scenarios, scenario_name);

struct world {
	struct rdmatensor_rendezvous *rdv;
	struct rdmatensor_tensor tensors[LETTERS];
	struct rdmatensor_waiter waiters[LETTERS];
	struct rdmatensor_tensor *marked;
};

static struct world *new_world(struct kunit *test)
{
	struct world *world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, world);
	world->rdv = rdmatensor_rendezvous_alloc();
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, world->rdv);
	/* By which two names of a script have one hash */
	world->rdv->name_seed = 0;
	return world;
}

static void matches_text(struct world *world, struct list_head *matches, char *text)
{
	struct rdmatensor_waiter *waiter, *next;

	list_for_each_entry_safe(waiter, next, matches, item) {
		list_del_init(&waiter->item);
		*text++ = 'a' + (waiter - world->waiters);
		if (waiter->tensor)
			*text++ = 'A' + (waiter->tensor - world->tensors);
	}
	*text = 0;
}

static void released_text(struct world *world, struct list_head *released, char *text)
{
	struct rdmatensor_tensor *tensor, *next;

	list_for_each_entry_safe(tensor, next, released, item) {
		list_del_init(&tensor->item);
		*text++ = 'A' + (tensor - world->tensors);
	}
	*text = 0;
}

static int mark(struct rdmatensor_tensor *tensor, void *arg)
{
	struct world *world = arg;

	world->marked = tensor;
	return 0;
}

/* The same letters, in whatever order */
static bool same_letters(const char *a, const char *b)
{
	unsigned long x = 0, y = 0;

	if (strlen(a) != strlen(b))
		return false;
	for (; *a; a++, b++) {
		x |= BIT(*a - 'A');
		y |= BIT(*b - 'A');
	}
	return x == y;
}

#define EXPECT(condition) \
	KUNIT_EXPECT_TRUE_MSG(test, condition, "step of line %d", s->line)
#define EXPECT_RET(value) \
	KUNIT_EXPECT_EQ_MSG(test, value, s->ret, "step of line %d", s->line)
#define EXPECT_TEXT(value, text) \
	KUNIT_EXPECT_STREQ_MSG(test, value, text, "step of line %d", s->line)

static void do_publish(struct kunit *test, struct world *world, const struct step *s)
{
	struct rdmatensor_tensor *tensor = &world->tensors[*s->who - 'A'];
	char text[2 * LETTERS + 1];
	LIST_HEAD(matches);

	memset(tensor, 0xa5, sizeof(*tensor));
	tensor->generation = NULL;
	tensor->failed.error = 0;
	tensor->uses = s->uses;
	EXPECT_RET(rdmatensor_rendezvous_publish(world->rdv, tensor, s->name,
						 strlen(s->name), s->step_id, &matches));
	matches_text(world, &matches, text);
	EXPECT_TEXT(text, s->tensors);
	if (!s->ret)
		EXPECT(rdmatensor_tensor_step(tensor) == s->step_id);
}

static void do_request(struct kunit *test, struct world *world, const struct step *s)
{
	struct rdmatensor_waiter *waiter = &world->waiters[*s->who - 'a'];
	const struct rdmatensor_wanted wanted = {
		.name = s->name, .name_len = strlen(s->name), .step_id = s->step_id,
		.newest = s->newest, .now = s->now,
	};

	memset(waiter, 0xa5, sizeof(*waiter));
	EXPECT_RET(rdmatensor_rendezvous_request(world->rdv, waiter, &wanted, GFP_ATOMIC));
	if (s->status)
		EXPECT(waiter->status.error == s->status && waiter->status.text_len);
	EXPECT(waiter->waiting == (s->ret == 1));
	EXPECT(!waiter->status.error == (s->ret >= 0));
	if (s->ret)
		EXPECT(!waiter->tensor);
	else
		EXPECT(waiter->tensor == &world->tensors[*s->tensors - 'A']);
}

static void do_put(struct kunit *test, struct world *world, const struct step *s)
{
	struct rdmatensor_tensor *tensor = &world->tensors[*s->who - 'A'];
	char text[2 * LETTERS + 1];
	LIST_HEAD(matches);

	EXPECT_RET(rdmatensor_rendezvous_put(world->rdv, tensor, s->op == DELIVER,
					     &matches));
	matches_text(world, &matches, text);
	EXPECT_TEXT(text, s->op == DELIVER ? "" : s->tensors);
	if (s->ret)
		EXPECT(tensor->withdraw_status == s->status);
}

static void do_withdraw(struct kunit *test, struct world *world, const struct step *s)
{
	struct rdmatensor_tensor *tensor = NULL;
	bool released = false;

	world->marked = NULL;
	EXPECT_RET(rdmatensor_rendezvous_withdraw(world->rdv, s->name, strlen(s->name),
						  s->step_id, 0, mark, world, &tensor,
						  &released));
	EXPECT(world->marked == tensor);
	if (s->ret) {
		EXPECT(!tensor);
		return;
	}
	EXPECT(tensor == &world->tensors[*s->tensors - 'A']);
	EXPECT(released == s->uses);
	if (released)
		EXPECT(tensor->withdraw_status == s->status);
}

static void do_abort(struct kunit *test, struct world *world, const struct step *s)
{
	struct rdmatensor_status status = { .error = s->status, .text_len = 3, .text = "why" };
	char tensors[LETTERS + 1], waiters[2 * LETTERS + 1];
	LIST_HEAD(released);
	LIST_HEAD(waiting);
	const char *c;

	rdmatensor_rendezvous_abort_step(world->rdv, s->step_id, &status, &released,
					 &waiting);
	released_text(world, &released, tensors);
	matches_text(world, &waiting, waiters);
	EXPECT(same_letters(tensors, s->tensors));
	EXPECT_TEXT(waiters, s->waiters);
	for (c = tensors; *c; c++)
		EXPECT(world->tensors[*c - 'A'].withdraw_status == s->status);
	for (c = waiters; *c; c++) {
		struct rdmatensor_waiter *waiter = &world->waiters[*c - 'a'];

		EXPECT(waiter->status.error == s->status && !waiter->waiting);
		EXPECT(waiter->status.text_len == 3 && !memcmp(waiter->status.text, "why", 3));
		/* The key that it was at: the table has none of them any more */
		EXPECT(waiter->key);
		rdmatensor_waiter_end(waiter);
		EXPECT(!waiter->key);
	}
}

static void do_status(struct kunit *test, struct world *world, const struct step *s)
{
	struct rdmatensor_status status = { .error = 0 };

	EXPECT(rdmatensor_rendezvous_step_status(world->rdv, s->step_id, &status) ==
	       !!s->status);
	EXPECT(status.error == s->status);
	EXPECT(status.text_len == (s->status ? 3 : 0));
}

static void do_drain(struct kunit *test, struct world *world, const struct step *s)
{
	char tensors[LETTERS + 1];
	LIST_HEAD(released);
	const char *c;

	rdmatensor_rendezvous_drain(world->rdv, &released);
	released_text(world, &released, tensors);
	EXPECT(same_letters(tensors, s->tensors));
	for (c = tensors; *c; c++) {
		struct rdmatensor_tensor *tensor = &world->tensors[*c - 'A'];

		EXPECT(tensor->withdraw_status == (tensor->uses ? -ECANCELED : 0));
	}
}

static void scenario(struct kunit *test)
{
	const struct scenario *scenario = test->param_value;
	struct world *world = new_world(test);
	struct rdmatensor_waiter *waiter;
	const struct step *s;
	LIST_HEAD(left);
	unsigned int i;

	for (s = scenario->steps; s->op != END; s++) {
		switch (s->op) {
		case PUBLISH:
			do_publish(test, world, s);
			break;
		case REQUEST:
			do_request(test, world, s);
			break;
		case CANCEL:
			waiter = &world->waiters[*s->who - 'a'];
			EXPECT_RET(rdmatensor_rendezvous_cancel(world->rdv, waiter));
			break;
		case DELIVER:
		case GIVE_BACK:
			do_put(test, world, s);
			break;
		case WITHDRAW:
			do_withdraw(test, world, s);
			break;
		case ABORT:
			do_abort(test, world, s);
			break;
		case STATUS:
			do_status(test, world, s);
			break;
		case DRAIN:
			do_drain(test, world, s);
			break;
		case END:
			break;
		}
	}

	rdmatensor_rendezvous_drain(world->rdv, &left);
	KUNIT_EXPECT_TRUE_MSG(test, list_empty(&left), "a tensor is left");
	for (i = 0; i < LETTERS; i++)
		KUNIT_EXPECT_FALSE_MSG(test, world->waiters[i].waiting, "%c waits", 'a' + i);
	rdmatensor_rendezvous_free(world->rdv);
}

static int publish(struct world *world, struct rdmatensor_tensor *tensor, const void *name,
		   u16 name_len, s64 step_id)
{
	LIST_HEAD(matches);

	return rdmatensor_rendezvous_publish(world->rdv, tensor, name, name_len, step_id,
					     &matches);
}

/* What a tensor says is the publisher's: matched, returned and ended as any other */
static void failed_tensor(struct kunit *test)
{
	struct world *world = new_world(test);
	struct rdmatensor_tensor *tensor = &world->tensors[0], copy;
	struct rdmatensor_waiter *waiter = &world->waiters[0];
	LIST_HEAD(matches);

	tensor->uses = 1;
	tensor->failed.error = -EIO;
	tensor->failed.text_len = 4;
	memcpy(tensor->failed.text, "text", 4);
	tensor->meta.data_type = RDMATENSOR_DT_FLOAT;
	copy = *tensor;
	KUNIT_ASSERT_EQ(test, publish(world, tensor, "x", 1, 1), 0);
	KUNIT_EXPECT_EQ(test, publish(world, &world->tensors[1], "x", 1, 1), -EEXIST);
	KUNIT_ASSERT_EQ(test, request(world->rdv, waiter, "x", 1, 1, GFP_KERNEL), 0);
	KUNIT_EXPECT_PTR_EQ(test, waiter->tensor, tensor);
	KUNIT_EXPECT_EQ(test, waiter->status.error, 0);
	KUNIT_EXPECT_FALSE(test, rdmatensor_rendezvous_put(world->rdv, tensor, false,
							   &matches));
	KUNIT_ASSERT_EQ(test, request(world->rdv, waiter, "x", 1, 1, GFP_KERNEL), 0);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->rdv, tensor, true, NULL));
	KUNIT_EXPECT_EQ(test, tensor->withdraw_status, 0);
	KUNIT_EXPECT_EQ(test, memcmp(&tensor->failed, &copy.failed, sizeof(copy.failed)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&tensor->meta, &copy.meta, sizeof(copy.meta)), 0);
	rdmatensor_rendezvous_free(world->rdv);
}

static void names(struct kunit *test)
{
	static const struct {
		const char *name;
		u16 len;
	} all[LETTERS] = {
		{ "a", 1 }, { "ab", 2 }, { "a\0", 2 }, { "a\0b", 3 }, { "\0", 1 },
		{ "\0\0", 2 }, { "\xff", 1 }, { "b", 1 },
	};
	struct world *world = new_world(test);
	struct rdmatensor_waiter *waiter = &world->waiters[0];
	unsigned int i;

	for (i = 0; i < LETTERS; i++) {
		char name[4];

		/* The table must have made its own copy */
		memcpy(name, all[i].name, all[i].len);
		world->tensors[i].uses = 1;
		KUNIT_ASSERT_EQ(test, publish(world, &world->tensors[i], name, all[i].len, 1),
				0);
		memset(name, 'z', sizeof(name));
	}
	for (i = 0; i < LETTERS; i++) {
		KUNIT_ASSERT_EQ(test,
				request(world->rdv, waiter, all[i].name, all[i].len, 1, GFP_KERNEL),
				0);
		KUNIT_EXPECT_PTR_EQ(test, waiter->tensor, &world->tensors[i]);
		KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->rdv, waiter->tensor,
								  true, NULL));
	}
	rdmatensor_rendezvous_free(world->rdv);
}

#define NEIGHBOURS 500

/*
 * Keys that differ in one respect only, so many that they meet in the hash: names
 * of zeros, each the beginning of the next, and one name in many steps
 */
static void neighbours(struct kunit *test)
{
	struct world *world = new_world(test);
	struct rdmatensor_waiter *waiter = &world->waiters[0];
	struct rdmatensor_tensor *tensors, *tensor;
	char *zeros = kunit_kzalloc(test, NEIGHBOURS, GFP_KERNEL);
	unsigned int i;
	bool released;

	tensors = kunit_kzalloc(test, 2 * NEIGHBOURS * sizeof(*tensors), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, zeros);
	KUNIT_ASSERT_NOT_NULL(test, tensors);
	for (i = 0; i < NEIGHBOURS; i++) {
		tensors[2 * i].uses = 1;
		tensors[2 * i + 1].uses = 1;
		KUNIT_EXPECT_EQ(test, publish(world, &tensors[2 * i], zeros, NEIGHBOURS - i, -1),
				0);
		KUNIT_EXPECT_EQ(test, publish(world, &tensors[2 * i + 1], zeros, 3, i), 0);
	}
	for (i = 0; i < NEIGHBOURS; i++) {
		KUNIT_EXPECT_EQ(test,
				request(world->rdv, waiter, zeros, NEIGHBOURS - i, -1, GFP_KERNEL),
				0);
		KUNIT_EXPECT_PTR_EQ(test, waiter->tensor, &tensors[2 * i]);
		KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->rdv, waiter->tensor,
								  true, NULL));
		KUNIT_EXPECT_EQ(test,
				rdmatensor_rendezvous_withdraw(world->rdv, zeros, 3, i, 0, NULL,
							       NULL, &tensor, &released), 0);
		KUNIT_EXPECT_PTR_EQ(test, tensor, &tensors[2 * i + 1]);
	}
	rdmatensor_rendezvous_free(world->rdv);
}

static void longest_name(struct kunit *test)
{
	struct world *world = new_world(test);
	struct rdmatensor_waiter *waiter = &world->waiters[0];
	char *name = kunit_kzalloc(test, RDMATENSOR_NAME_MAX, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, name);
	world->tensors[0].uses = 1;
	KUNIT_ASSERT_EQ(test, publish(world, &world->tensors[0], name, RDMATENSOR_NAME_MAX, 1),
			0);
	KUNIT_EXPECT_EQ(test, request(world->rdv, waiter, name, RDMATENSOR_NAME_MAX - 1, 1,
				      GFP_KERNEL), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->rdv, waiter));
	name[RDMATENSOR_NAME_MAX - 1] = 1;
	KUNIT_EXPECT_EQ(test, request(world->rdv, waiter, name, RDMATENSOR_NAME_MAX, 1, GFP_KERNEL),
			1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->rdv, waiter));
	name[RDMATENSOR_NAME_MAX - 1] = 0;
	KUNIT_ASSERT_EQ(test, request(world->rdv, waiter, name, RDMATENSOR_NAME_MAX, 1, GFP_KERNEL),
			0);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->rdv, waiter->tensor, true,
							  NULL));
	rdmatensor_rendezvous_free(world->rdv);
}

static void abort_one(struct kunit *test, struct world *world, s64 step_id, unsigned int tensors)
{
	struct rdmatensor_status status = { .error = -EIO };
	struct rdmatensor_tensor *tensor, *next;
	LIST_HEAD(released);
	LIST_HEAD(waiters);
	unsigned int n = 0;

	rdmatensor_rendezvous_abort_step(world->rdv, step_id, &status, &released, &waiters);
	list_for_each_entry_safe(tensor, next, &released, item) {
		list_del_init(&tensor->item);
		KUNIT_EXPECT_EQ(test, rdmatensor_tensor_step(tensor), step_id);
		KUNIT_EXPECT_EQ(test, tensor->withdraw_status, -EIO);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, tensors);
	KUNIT_EXPECT_TRUE(test, list_empty(&waiters));
}

static bool is_aborted(struct world *world, s64 step_id)
{
	struct rdmatensor_status status;

	return rdmatensor_rendezvous_step_status(world->rdv, step_id, &status);
}

static void remembers_64_steps(struct kunit *test)
{
	struct world *world = new_world(test);
	s64 step_id;

	for (step_id = 0; step_id < 64; step_id++) {
		KUNIT_EXPECT_FALSE(test, is_aborted(world, step_id));
		abort_one(test, world, step_id, 0);
	}
	for (step_id = 0; step_id < 64; step_id++)
		KUNIT_EXPECT_TRUE(test, is_aborted(world, step_id));

	abort_one(test, world, 64, 0);
	KUNIT_EXPECT_FALSE(test, is_aborted(world, 0));
	for (step_id = 1; step_id < 65; step_id++)
		KUNIT_EXPECT_TRUE(test, is_aborted(world, step_id));

	/* Aborted again is aborted last */
	abort_one(test, world, 1, 0);
	KUNIT_EXPECT_TRUE(test, is_aborted(world, 2));
	abort_one(test, world, 65, 0);
	KUNIT_EXPECT_TRUE(test, is_aborted(world, 1));
	KUNIT_EXPECT_FALSE(test, is_aborted(world, 2));
	for (step_id = 66; step_id < 66 + 63; step_id++)
		abort_one(test, world, step_id, 0);
	KUNIT_EXPECT_FALSE(test, is_aborted(world, 1));
	KUNIT_EXPECT_TRUE(test, is_aborted(world, 65));

	world->tensors[0].uses = 1;
	KUNIT_EXPECT_EQ(test, publish(world, &world->tensors[0], "x", 1, 1), 0);
	KUNIT_EXPECT_EQ(test, publish(world, &world->tensors[1], "x", 1, 65), -EIO);
	abort_one(test, world, 1, 1);
	rdmatensor_rendezvous_free(world->rdv);
}

/* A tensor with uses 0 outlives the memory of its step's end, and stays as it was */
static void forgotten_step(struct kunit *test)
{
	struct world *world = new_world(test);
	struct rdmatensor_waiter *waiter = &world->waiters[0];
	struct rdmatensor_tensor *tensor;
	bool released;
	s64 step_id;

	KUNIT_ASSERT_EQ(test, publish(world, &world->tensors[0], "x", 1, 0), 0);
	for (step_id = 0; step_id < 65; step_id++)
		abort_one(test, world, step_id, 0);
	KUNIT_EXPECT_EQ(test, request(world->rdv, waiter, "x", 1, 0, GFP_KERNEL), 1);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_cancel(world->rdv, waiter));
	KUNIT_EXPECT_EQ(test, rdmatensor_rendezvous_withdraw(world->rdv, "x", 1, 0, 0, NULL, NULL,
							     &tensor, &released), 0);
	KUNIT_EXPECT_PTR_EQ(test, tensor, &world->tensors[0]);
	KUNIT_EXPECT_TRUE(test, released);
	rdmatensor_rendezvous_free(world->rdv);
}

static int withdraw_one(struct world *world, u64 id, struct rdmatensor_tensor **tensor,
			bool *released)
{
	*tensor = NULL;
	return rdmatensor_rendezvous_withdraw(world->rdv, "x", 1, 0, id, NULL, NULL, tensor,
					      released);
}

/* A WITHDRAW that means one of two, in whichever list each is */
static void withdraw_of_one(struct kunit *test)
{
	struct world *world = new_world(test);
	struct rdmatensor_tensor *tensors = world->tensors, *tensor;
	struct rdmatensor_waiter *waiter = world->waiters;
	LIST_HEAD(matches);
	bool released;
	int i;

	for (i = 0; i < 3; i++) {
		tensors[i].id = 7 + i;
		tensors[i].uses = 1;
	}
	KUNIT_ASSERT_EQ(test, publish(world, &tensors[0], "x", 1, 0), 0);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, request(world->rdv, &waiter[i], "x", 1, 0, GFP_KERNEL), 0);
		KUNIT_ASSERT_EQ(test, publish(world, &tensors[i + 1], "x", 1, 0), 0);
	}
	/* Two are held, the third is offered */
	KUNIT_EXPECT_EQ(test, withdraw_one(world, 10, &tensor, &released), -ENOENT);
	KUNIT_EXPECT_EQ(test, withdraw_one(world, 7, &tensor, &released), 0);
	KUNIT_EXPECT_PTR_EQ(test, tensor, &tensors[0]);
	KUNIT_EXPECT_FALSE(test, released);
	KUNIT_EXPECT_EQ(test, withdraw_one(world, 7, &tensor, &released), -EALREADY);
	KUNIT_EXPECT_EQ(test, withdraw_one(world, 9, &tensor, &released), 0);
	KUNIT_EXPECT_PTR_EQ(test, tensor, &tensors[2]);
	KUNIT_EXPECT_TRUE(test, released);
	KUNIT_EXPECT_TRUE(test, rdmatensor_rendezvous_put(world->rdv, &tensors[0], false,
							  &matches));
	/* What was not delivered is offered again, and is found there */
	KUNIT_EXPECT_FALSE(test, rdmatensor_rendezvous_put(world->rdv, &tensors[1], false,
							   &matches));
	KUNIT_EXPECT_EQ(test, withdraw_one(world, 7, &tensor, &released), -ENOENT);
	KUNIT_EXPECT_EQ(test, withdraw_one(world, 8, &tensor, &released), 0);
	KUNIT_EXPECT_PTR_EQ(test, tensor, &tensors[1]);
	KUNIT_EXPECT_TRUE(test, released);
	KUNIT_EXPECT_TRUE(test, list_empty(&matches));
	rdmatensor_rendezvous_free(world->rdv);
}

/* KUnit gives up a case that takes five minutes, which as many take while races are looked for */
#define MANY (IS_ENABLED(CONFIG_KCSAN) ? 20000 : 100000)
#define MANY_STEPS 1000

/* Far more steps than lists of them, and far more names than a walk's batch */
static void many_names(struct kunit *test)
{
	struct world *world = new_world(test);
	struct rdmatensor_tensor *tensors, *tensor, *next;
	struct rdmatensor_waiter *waiters;
	unsigned int n = 0;
	LIST_HEAD(released);
	u32 i;
	const char *name = (const char *)&i;

	tensors = kvcalloc(MANY, sizeof(*tensors), GFP_KERNEL);
	waiters = kvcalloc(MANY, sizeof(*waiters), GFP_KERNEL);
	if (!tensors || !waiters) {
		KUNIT_FAIL(test, "no memory");
		goto out_free;
	}

	/* One step has half of the names */
	for (i = 0; i < MANY; i++) {
		s64 step_id = i % 2 ? -1LL : i % MANY_STEPS;

		tensors[i].uses = 1;
		if (publish(world, &tensors[i], &i, sizeof(i), step_id)) {
			KUNIT_FAIL(test, "publish %u", i);
			goto out_free;
		}
	}
	/* Each fourth is delivered */
	for (i = 0; i < MANY; i += 4) {
		if (request(world->rdv, &waiters[i], name, sizeof(i), i % MANY_STEPS, GFP_ATOMIC) ||
		    waiters[i].tensor != &tensors[i] ||
		    !rdmatensor_rendezvous_put(world->rdv, &tensors[i], true, NULL)) {
			KUNIT_FAIL(test, "request %u", i);
			goto out_free;
		}
	}
	abort_one(test, world, -1, MANY / 2);
	abort_one(test, world, 0, 0);
	abort_one(test, world, 2, MANY / MANY_STEPS);
	abort_one(test, world, 3, 0);
	rdmatensor_rendezvous_drain(world->rdv, &released);
	list_for_each_entry_safe(tensor, next, &released, item) {
		list_del(&tensor->item);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, MANY / 4 - MANY / MANY_STEPS);

	for (i = 0; i < MANY; i++) {
		if (request(world->rdv, &waiters[i], name, sizeof(i), 7, GFP_KERNEL) != 1) {
			KUNIT_FAIL(test, "wait %u", i);
			goto out_free;
		}
	}
	for (i = 0; i < MANY; i++) {
		if (!rdmatensor_rendezvous_cancel(world->rdv, &waiters[MANY - 1 - i])) {
			KUNIT_FAIL(test, "cancel %u", i);
			goto out_free;
		}
	}
	rdmatensor_rendezvous_free(world->rdv);
out_free:
	kvfree(tensors);
	kvfree(waiters);
}

struct listed {
	u32 nr;
	u32 last;
	bool in_order;
};

static bool add_listed(const struct rdmatensor_tensor *tensor,
		       const struct rdmatensor_rendezvous_key *key, u64 cursor, void *arg)
{
	struct listed *listed = arg;
	u16 name_len;
	u32 number;

	memcpy(&number, rdmatensor_rendezvous_key_name(key, &name_len), sizeof(number));
	listed->in_order &= !listed->nr || number > listed->last;
	listed->last = number;
	listed->nr++;
	return true;
}

/* Each call looks at a bounded number of keys, and what comes and goes is no trouble */
static void list_of_many(struct kunit *test)
{
	struct world *world = new_world(test);
	struct listed all = { .in_order = true }, some = { .in_order = true };
	struct rdmatensor_tensor *tensors, *tensor;
	unsigned int calls = 0;
	LIST_HEAD(released);
	bool done;
	u64 cursor = 0;
	u32 before, i;
	int ret;

	tensors = kvcalloc(MANY, sizeof(*tensors), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tensors);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, publish(world, &tensors[i], &i, sizeof(i), i % 7), 0);
	do {
		before = all.nr;
		rdmatensor_rendezvous_list(world->rdv, &cursor, "", 0, add_listed, &all);
		KUNIT_EXPECT_LE(test, all.nr - before, 64);
		/* What has been listed goes, and the key behind which it goes on above all */
		for (; before < all.nr && cursor; before++) {
			ret = rdmatensor_rendezvous_withdraw(world->rdv, (const char *)&before,
							     sizeof(before), before % 7, 0, NULL,
							     NULL, &tensor, &done);
			KUNIT_EXPECT_EQ(test, ret, 0);
		}
		calls++;
	} while (cursor && calls <= MANY);
	KUNIT_EXPECT_EQ(test, all.nr, MANY);
	KUNIT_EXPECT_TRUE(test, all.in_order);
	KUNIT_EXPECT_EQ(test, calls, DIV_ROUND_UP(MANY, 64));

	rdmatensor_rendezvous_drain(world->rdv, &released);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, publish(world, &tensors[i], &i, sizeof(i), 1), 0);
	/* Of a prefix: the low byte */
	do
		rdmatensor_rendezvous_list(world->rdv, &cursor, "\x11", 1, add_listed, &some);
	while (cursor);
	KUNIT_EXPECT_EQ(test, some.nr, (MANY - 0x11 + 255) / 256);
	KUNIT_EXPECT_TRUE(test, some.in_order);
	INIT_LIST_HEAD(&released);
	rdmatensor_rendezvous_drain(world->rdv, &released);
	rdmatensor_rendezvous_free(world->rdv);
	kvfree(tensors);
}

static struct kunit_case rendezvous_tests[] = {
	KUNIT_CASE_PARAM(scenario, scenario_gen_params),
	KUNIT_CASE(failed_tensor),
	KUNIT_CASE(names),
	KUNIT_CASE(neighbours),
	KUNIT_CASE(longest_name),
	KUNIT_CASE(remembers_64_steps),
	KUNIT_CASE(forgotten_step),
	KUNIT_CASE(withdraw_of_one),
	KUNIT_CASE(many_names),
	KUNIT_CASE(list_of_many),
	{}
};

static struct kunit_suite rendezvous_suite = {
	.name = "rdmatensor_rendezvous",
	.test_cases = rendezvous_tests,
};

kunit_test_suite(rendezvous_suite);
