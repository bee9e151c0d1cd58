// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A check of all pairs. Each rank tries all others, and offers what it has found, its row; has the
 * rows of those that it has reached, and offers the table that they make; and has from the first of
 * these that knows it the row of each that it has not reached. In the end it waits for those that
 * are still at it, as they may want its row or its table.
 *
 * Half of the time is for trying others, a quarter for rows. A rank that does not answer keeps
 * nobody longer than that. One whose check ends early, which then stays open, keeps nobody: it offers its
 * row as far as it is known, and an empty table if it has none. What was offered stays until all have told
 * their rows in a later check, as others may be behind; if that never happens, for some checks, and the table
 * for one, after which there is an empty one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/* What was offered in so many checks before the last one stays for who may be behind */
#define KEPT_MOST 4

/**
 * struct check - one check
 * @size: number of ranks
 * @step: number of the check
 * @others: all ranks but the own one
 * @found: of each of these, what trying it has ended with
 * @errors: the table
 * @told: of each rank, whether the table has its row, from itself or from another one
 * @row_said: the own row is offered
 * @table_said: the table is
 * @all_came: each rank has told its row itself
 * @try_ns: until when others are tried
 * @row_ns: until when rows are waited for
 * @end_ns: of all
 */
struct check {
	unsigned int size;
	int64_t step;
	unsigned int *others;
	int *found;
	int *errors;
	bool *told;
	bool row_said;
	bool table_said;
	bool all_came;
	uint64_t try_ns;
	uint64_t row_ns;
	uint64_t end_ns;
};

static int try_one(struct rdmatensor_cluster *cluster, unsigned int rank, bool again, void *arg)
{
	const struct check *check = arg;

	return cluster_try_reach(cluster, rank, true, again, check->try_ns);
}

/* @count numbers under a token. Return: 0; an error, and the line is stored */
static int offer(struct rdmatensor_cluster *cluster, const struct check *check, const char *kind,
		 int *numbers, size_t count)
{
	struct rdmatensor_tensor tensor = {
		.data = numbers, .step = check->step, .data_type = RDMATENSOR_DT_INT32, .ndims = 1,
		.dims = { count },
	};
	char name[TOKEN_ROOM];

	cluster_call_token(cluster, kind, cluster->rank, name);
	return rdmatensor_offer(cluster->node, name, &tensor);
}

static int *row_of(const struct check *check, unsigned int rank)
{
	return check->errors + (size_t)rank * check->size;
}

static int offer_row(struct rdmatensor_cluster *cluster, struct check *check)
{
	int err = offer(cluster, check, "row", row_of(check, cluster->rank), check->size);

	check->row_said = !err;
	return err;
}

static int offer_table(struct rdmatensor_cluster *cluster, struct check *check)
{
	int err = offer(cluster, check, "table", check->errors, (size_t)check->size * check->size);

	check->table_said = !err;
	return err;
}

/* What was offered in checks before that one. What fails is tried again in the next */
static void withdraw_before(struct rdmatensor_cluster *cluster, int64_t step)
{
	while (cluster->checks_kept < step &&
	       cluster_withdraw(cluster, "row", cluster->checks_kept) &&
	       cluster_withdraw(cluster, "table", cluster->checks_kept) &&
	       cluster_withdraw(cluster, "checked", cluster->checks_kept))
		cluster->checks_kept++;
}

/* After a check that has not ended early: that may wait for who reads it */
static void withdraw_former(struct rdmatensor_cluster *cluster, const struct check *check)
{
	if (check->all_came)
		withdraw_before(cluster, check->step);
	else if (cluster_withdraw(cluster, "table", check->step - 1))
		cluster_offer_token(cluster, "table", check->step - 1);
}

/* As far as it is known. What has ended the call says nothing of a pair */
static void have_own_row(const struct check *check, unsigned int own)
{
	unsigned int i;

	for (i = 0; i + 1 < check->size; i++)
		row_of(check, own)[check->others[i]] =
			cluster_ends_call(check->found[i]) ? -ENODATA : check->found[i];
}

/* The call's line stays. Who asks for a table that was not made goes on with an empty one */
static void end_early(struct rdmatensor_cluster *cluster, struct check *check)
{
	char *line = strdup(rdmatensor_node_error());

	if (!check->row_said) {
		if (check->others && check->found)
			have_own_row(check, cluster->rank);
		offer_row(cluster, check);
	}
	if (!check->table_said)
		cluster_offer_token(cluster, "table", check->step);
	cluster_offer_token(cluster, "checked", check->step);
	node_clear_error();
	if (line)
		node_fail(0, "%s", line);
	free(line);
}

static int get(struct rdmatensor_cluster *cluster, const struct check *check, unsigned int rank,
	       const char *kind, int *numbers, size_t count, uint64_t deadline_ns)
{
	struct rdmatensor_tensor tensor = {
		.data = numbers, .bytes = count * sizeof(*numbers), .step = check->step,
	};
	char token[TOKEN_ROOM], said[SAID_ROOM];
	const char *name = token;
	int err;

	cluster_call_token(cluster, kind, rank, token);
	err = cluster_get(cluster, rank, &name, &tensor, 1, deadline_ns);
	if (!err && tensor.bytes != count * sizeof(*numbers))
		err = node_fail(-EPROTO, "cluster: %s knows another number of ranks: start all with the same ones",
				cluster_said(cluster, rank, said));
	return err;
}

static void forget_row(const struct check *check, unsigned int rank)
{
	unsigned int to;

	for (to = 0; to < check->size; to++)
		row_of(check, rank)[to] = to == rank ? 0 : -ENODATA;
}

/* A peer says what it wants: only errnos get further */
static void tidy_row(const struct check *check, unsigned int rank)
{
	int *row = row_of(check, rank);
	unsigned int to;

	row[rank] = 0;
	for (to = 0; to < check->size; to++)
		if (row[to] > 0 || row[to] < -4095)
			row[to] = -EPROTO;
}

static int have_row(struct rdmatensor_cluster *cluster, unsigned int rank, bool again, void *arg)
{
	const struct check *check = arg;
	int err;

	(void)again;
	err = get(cluster, check, rank, "row", row_of(check, rank), check->size, check->row_ns);
	if (err)
		forget_row(check, rank);
	else
		tidy_row(check, rank);
	check->told[rank] = !err;
	return err;
}

/* Who has offered the table knows something of that rank's row */
static bool is_known(const struct check *check, const int *row, unsigned int rank)
{
	unsigned int to;

	for (to = 0; to < check->size; to++)
		if (to != rank && row[to] != -ENODATA)
			return true;
	return false;
}

/* Rows that a reachable rank has, of ranks that have not told this one. Return: 0; what ends the call */
static int have_missing(struct rdmatensor_cluster *cluster, const struct check *check)
{
	size_t all = (size_t)check->size * check->size;
	int *table = malloc(all * sizeof(*table)), *row;
	unsigned int i, rank, missing;
	int err = 0;

	for (i = 0; table && i + 1 < check->size; i++) {
		for (missing = 0, rank = 0; rank < check->size; rank++)
			missing += !check->told[rank];
		if (!missing)
			break;
		if (check->found[i] || !check->told[check->others[i]])
			continue;
		err = get(cluster, check, check->others[i], "table", table, all, check->end_ns);
		if (cluster_ends_call(err))
			break;
		if (err)
			continue;
		for (rank = 0; rank < check->size; rank++) {
			row = table + (size_t)rank * check->size;
			if (check->told[rank] || !is_known(check, row, rank))
				continue;
			memcpy(row_of(check, rank), row, check->size * sizeof(*row));
			tidy_row(check, rank);
			check->told[rank] = true;
		}
	}
	free(table);
	return cluster_ends_call(err) ? err : 0;
}

/* Until those that this rank has reached, and that have reached it, have all they want */
static void await_others(struct rdmatensor_cluster *cluster, const struct check *check)
{
	unsigned int *reached = calloc(check->size, sizeof(*reached)), i, nr = 0;

	for (i = 0; reached && i + 1 < check->size; i++)
		if (!check->found[i] && !row_of(check, check->others[i])[cluster->rank])
			reached[nr++] = check->others[i];
	if (reached && !cluster_offer_token(cluster, "checked", check->step))
		cluster_await_quietly(cluster, reached, nr, "checked", check->step, check->end_ns);
	free(reached);
}

static int run(struct rdmatensor_cluster *cluster, struct check *check)
{
	struct cluster_round tries = {
		.work = try_one, .arg = check, .deadline_ns = check->try_ns,
		.ranks = check->others, .nr = check->size - 1,
		.stage = RDMATENSOR_CLUSTER_CHECKING, .errors = check->found,
	};
	unsigned int *reached = calloc(check->size, sizeof(*reached)), i;
	int *ends = calloc(check->size, sizeof(*ends));
	int err;
	struct cluster_round rows = {
		.work = have_row, .arg = check, .ranks = reached,
		.stage = RDMATENSOR_CLUSTER_GATHERING, .errors = ends,
	};

	err = reached && ends ? cluster_run(cluster, &tries) : node_fail(-ENOMEM, "cluster: out of memory");
	free(tries.first);
	if (err < 0)
		goto out;
	have_own_row(check, cluster->rank);
	for (i = 0; i + 1 < check->size; i++)
		if (!check->found[i])
			reached[rows.nr++] = check->others[i];
	err = offer_row(cluster, check);
	if (!err)
		err = cluster_run(cluster, &rows);
	free(rows.first);
	if (err < 0)
		goto out;
	check->all_came = !err && rows.nr == check->size - 1;
	err = offer_table(cluster, check);
	if (err)
		goto out;
	err = have_missing(cluster, check);
	if (!err)
		await_others(cluster, check);
out:
	free(ends);
	free(reached);
	return err;
}

/* Parts of the time that there is */
static void share_time(struct check *check, uint64_t deadline_ns)
{
	uint64_t now = rdmatensor_now_ns();
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	check->end_ns = deadline_ns;
	check->try_ns = deadline_ns ? now + left / 2 : 0;
	check->row_ns = deadline_ns ? now + left / 4 * 3 : 0;
}

int rdmatensor_cluster_check(struct rdmatensor_cluster *cluster, int *errors, unsigned int size)
{
	struct check check = { .size = size, .errors = errors };
	size_t all = (size_t)size * size, i;
	unsigned int rank, nr = rdmatensor_cluster_size(cluster);
	int err;

	node_clear_error();
	if (nr != size)
		return node_fail(-ESTALE, "cluster: check: there are %u ranks, and the matrix is of %u: make it for rdmatensor_cluster_size()",
				 nr, size);
	check.step = ++cluster->checks;
	withdraw_before(cluster, check.step - KEPT_MOST);
	share_time(&check, cluster_deadline(cluster));
	check.others = calloc(check.size, sizeof(*check.others));
	check.found = calloc(check.size, sizeof(*check.found));
	check.told = calloc(check.size, sizeof(*check.told));
	for (nr = 0, rank = 0; rank < size; rank++) {
		forget_row(&check, rank);
		if (check.others && check.found && rank != cluster->rank) {
			check.found[nr] = -ENODATA;
			check.others[nr++] = rank;
		}
	}
	if (check.others && check.found && check.told) {
		check.told[cluster->rank] = true;
		err = run(cluster, &check);
	} else {
		err = node_fail(-ENOMEM, "cluster: out of memory");
	}
	if (err)
		end_early(cluster, &check);
	free(check.told);
	free(check.found);
	free(check.others);
	if (err)
		return err;
	withdraw_former(cluster, &check);
	node_clear_error();
	for (nr = 0, i = 0; i < all; i++)
		nr += !!errors[i];
	return (int)nr;
}
