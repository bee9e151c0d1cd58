/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scene of the hostile peer: a context that is lied to, an honest peer of it that
 * must not notice, and a context that the liar has no business with.
 */
#ifndef RDMATENSOR_TEST_HOSTILE_H
#define RDMATENSOR_TEST_HOSTILE_H

#include "harness.h"
#include "liar.h"

#define TENSOR 4096
#define GUARD 65536
#define STRANGER 262144

/**
 * struct scene - who is there
 * @p: a is the victim, which publishes "w"; b is honest, and publishes "h"
 * @stranger: a third context, connected to nobody
 * @guard: a region of the victim's pool that nobody was given
 * @honest_at: where b fetches to
 * @channel: the victim's channel to the liar
 * @breaches: times that the victim has counted a breach of the protocol
 */
struct scene {
	struct pair p;
	struct side stranger;
	uint64_t guard;
	uint64_t honest_at;
	uint32_t channel;
	uint64_t breaches;
};

extern struct scene scene;

/* START's fields of the victim: short bounds, few requests */
void scene_tune(struct rdmatensor_start *start);
void scene_open(void (*tune)(struct rdmatensor_start *start));
/* Who is honest is served in both directions, and no byte changed that must not */
void scene_duty(void);
/* A liar that has come up as @scene.channel */
void scene_meet(struct liar *liar, unsigned int lanes);
/* The liar's channel ends with @error, which is counted if it is a breach; then closes it */
void scene_ends(struct liar *liar, int error);
/* It has not ended: there is an answer to a CANCEL over it; then it is closed */
void scene_lives(struct liar *liar);
/* The victim asks the liar for a tensor of @room bytes at a region of its own */
uint64_t scene_ask(uint64_t id, uint64_t room);
/* What it asks with. Return: the destination's key, of *msg */
uint32_t scene_asked(struct liar *liar, struct rdmatensor_msg *msg);

/* A right message of each type, of which a lie can be made */
struct rdmatensor_msg scene_right(int type, uint32_t index);
/* As @msg, with the destination at the liar's LIAR_DEST; @rkey is @msg's from then on */
void scene_to_own(struct liar *liar, struct rdmatensor_msg *msg, __le32 *rkey);

/* Numbers from HOSTILE_SEED on */
uint32_t below(uint32_t most);
long amount(const char *variable, long or_else);

#endif
