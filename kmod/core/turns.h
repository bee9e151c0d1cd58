/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The numbers of the questions that are asked in one slot, one after the other: which of them a
 * message of the peer's may answer. With the slot they are the request index on the wire. A
 * question that is forgotten is not taken back: the answer to it is late, and no error, unless a
 * later one has been answered.
 */
#ifndef RDMATENSOR_TURNS_H
#define RDMATENSOR_TURNS_H

#include <linux/bits.h>
#include <linux/types.h>

/* Numbers are modulo this: with any number of slots below 64 an index is in its range */
#define RDMATENSOR_TURNS BIT(26)

/**
 * struct rdmatensor_turns - of one slot; begins as 0
 * @next: number of the last question that was made
 * @asked: of the last one that was posted
 * @answered: of the last one that was answered
 */
struct rdmatensor_turns {
	u32 next;
	u32 asked;
	u32 answered;
};

/* The number of a question that is about to be sent */
static inline u32 rdmatensor_turns_next(struct rdmatensor_turns *turns)
{
	turns->next = (turns->next + 1) % RDMATENSOR_TURNS;
	return turns->next;
}

/* Whether a question of that number was asked that has no answer yet */
static inline bool rdmatensor_turns_is_due(const struct rdmatensor_turns *turns, u32 number)
{
	u32 ahead = (number - turns->answered) % RDMATENSOR_TURNS;

	return number < RDMATENSOR_TURNS && ahead &&
	       ahead <= (turns->asked - turns->answered) % RDMATENSOR_TURNS;
}

#endif /* RDMATENSOR_TURNS_H */
