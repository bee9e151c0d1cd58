// SPDX-License-Identifier: GPL-2.0
/*
 * Each parameter by three of its ways in: sysfs, START, the environment; at its default,
 * its ends, which may be 0, beyond them, and as what is no number; and START's and the
 * environment's over whatever the host's default is. insmod and the tool's options are
 * params.sh's. START answers with what holds.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>
#include <rdmatensor/params.h>
#include "harness.h"

/**
 * struct row - a parameter
 * @name: of the file in sysfs
 * @standard: default
 * @least: smallest value
 * @most: greatest value
 * @pow2: only powers of two
 * @set: its bit in START's mask
 * @offset: of START's field
 * @bytes: of it; 0: RDMATENSOR_START_VALIDATE is it
 * @variable: in the environment
 * @other: another one, or NULL
 */
struct row {
	const char *name;
	uint32_t standard;
	uint32_t least;
	uint32_t most;
	bool pow2;
	uint64_t set;
	size_t offset;
	size_t bytes;
	const char *variable;
	const char *other;
};

#define ROW(_name, _value, _least, _most, _kind, _set, _help, _variable, _other, ...) \
	{ #_name, _value, _least, _most, (_kind) & RDMATENSOR_PARAM_POW2, _set, \
	  offsetof(struct rdmatensor_start, _name), \
	  sizeof(((struct rdmatensor_start *)0)->_name), _variable, _other },
#define SWITCH(_name, _value, _least, _most, _kind, _set, _help, _variable, _other, ...) \
	{ #_name, _value, _least, _most, false, _set, 0, 0, _variable, _other },

static const struct row rows[] = {
	RDMATENSOR_PARAMS(ROW)
	RDMATENSOR_PARAM_SWITCHES(SWITCH)
};

#define EACH_ROW(_row) \
	for ((_row) = rows; (_row) < rows + sizeof(rows) / sizeof(*rows); (_row)++, test_alive())

static struct rdmatensor *rt;

static uint64_t field(const struct row *row, const struct rdmatensor_start *start)
{
	uint64_t wide;
	uint32_t value;

	if (!row->bytes)
		return !!(start->flags & RDMATENSOR_START_VALIDATE);
	if (row->bytes == sizeof(wide)) {
		memcpy(&wide, (const char *)start + row->offset, sizeof(wide));
		return wide;
	}
	memcpy(&value, (const char *)start + row->offset, sizeof(value));
	return value;
}

static void set_field(const struct row *row, struct rdmatensor_start *start, uint64_t value)
{
	uint32_t narrow = value;

	if (row->bytes == sizeof(value))
		memcpy((char *)start + row->offset, &value, sizeof(value));
	else if (row->bytes)
		memcpy((char *)start + row->offset, &narrow, sizeof(narrow));
	else if (value == 1)
		start->flags |= RDMATENSOR_START_VALIDATE;
	start->set |= row->set;
}

/* What the path decides: START does not know it */
static bool paths_own(const struct row *row)
{
	return row->set & (RDMATENSOR_SET_SL | RDMATENSOR_SET_TRAFFIC_CLASS);
}

/* What else must be so that this one can have all of its values */
static void companions(const struct row *row, struct rdmatensor_start *start)
{
	bool slots = !strcmp(row->name, "msg_slots") || !strcmp(row->name, "ack_batch");

	rdmatensor_start_init(start, "params");
	if (!strcmp(row->name, "queue_depth") || !strcmp(row->name, "msg_slot_bytes"))
		start->msg_slots = 4;
	if (slots) {
		start->queue_depth = 4096;
		start->msg_slot_bytes = 1024;
	}
	if (!strcmp(row->name, "ack_batch"))
		start->msg_slots = 1024;
}

/*
 * The device has the last word about these: soft-RoCE has one port, one P_Key, few GIDs.
 * Return: START's error for the greatest value of the range, and *says: a part of its text;
 * 0: the device does not mind
 */
static int device_minds(const struct row *row, uint64_t value, const char **says)
{
	*says = "";
	if (value != row->most)
		return 0;
	if (!strcmp(row->name, "port")) {
		*says = "START: port 255 is out of range: ";
		return -EINVAL;
	}
	if (!strcmp(row->name, "pkey_index")) {
		*says = "START: pkey_index 65535 is out of range: ";
		return -EINVAL;
	}
	if (!strcmp(row->name, "gid_index")) {
		*says = " is empty; see /sys/class/infiniband/";
		return -EADDRNOTAVAIL;
	}
	return 0;
}

/* A context of those fields. Return: START's error; *start: its answer */
static int begin(struct rdmatensor_start *start)
{
	int ret;

	EQ(rdmatensor_open(NULL, &rt), 0);
	ret = rdmatensor_start(rt, start);
	rdmatensor_close(rt);
	return ret;
}

static void holds(const struct row *row, struct rdmatensor_start *start, uint64_t value,
		  const char *way)
{
	const char *says;
	int error = device_minds(row, value, &says), ret = begin(start);

	if (error && ret == error && strstr(start->cause, says))
		return;
	if (error || ret || field(row, start) != value || !(start->set & row->set))
		test_fail(__FILE__, __LINE__, "%s %llu by %s: %d (%s), and holds %llu", row->name,
			  (unsigned long long)value, way, ret, start->cause,
			  (unsigned long long)field(row, start));
}

/* What auto comes to. Return: 0 where the path decides */
static uint64_t chosen(const struct row *row)
{
	struct rdmatensor_start start;

	companions(row, &start);
	set_field(row, &start, RDMATENSOR_PARAM_AUTO);
	EQ(begin(&start), 0);
	EQ(!(start.set & row->set), paths_own(row));
	return field(row, &start);
}

static void chosen_holds(const struct row *row, struct rdmatensor_start *start, uint64_t value,
			 const char *way)
{
	if (!paths_own(row)) {
		holds(row, start, value, way);
		return;
	}
	EQ(begin(start), 0);
	EQ(start->set & row->set, 0);
	EQ(field(row, start), 0);
}

static void path_of(const struct row *row, char *path, size_t room)
{
	snprintf(path, room, "/sys/module/rdmatensor/parameters/%s", row->name);
}

/* Return: 0 or a negative errno */
static int sysfs_set(const struct row *row, const char *text)
{
	char path[128];
	ssize_t len;
	int fd;

	path_of(row, path, sizeof(path));
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	/* Nothing written would be no setting: an empty one is a line */
	len = write(fd, *text ? text : "\n", *text ? strlen(text) : 1);
	len = len < 0 ? -errno : 0;
	close(fd);
	return (int)len;
}

static void sysfs_is(const struct row *row, const char *text)
{
	char path[128], is[64] = "";
	int fd;

	path_of(row, path, sizeof(path));
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK(read(fd, is, sizeof(is) - 1) > 0);
	close(fd);
	is[strcspn(is, "\n")] = '\0';
	if (strcmp(is, text))
		test_fail(__FILE__, __LINE__, "%s is %s in sysfs, expected %s", row->name, is,
			  text);
}

static const char *standard_text(const struct row *row)
{
	static char text[16];

	if (row->standard == RDMATENSOR_PARAM_AUTO)
		return "auto";
	snprintf(text, sizeof(text), "%u", row->standard);
	return text;
}

/* The suite is run with rnr_retry=0, and in either mode, which is not what these tests are about */
static void all_standard(void)
{
	const struct row *row;

	EACH_ROW(row)
		EQ(sysfs_set(row, standard_text(row)), 0);
}

static void as_the_suite_has_it(void)
{
	const struct row *row;

	EACH_ROW(row) {
		if (!strcmp(row->name, "rnr_retry"))
			EQ(sysfs_set(row, "0"), 0);
		if (!strcmp(row->name, "mr_mode") && test_strict())
			EQ(sysfs_set(row, "2"), 0);
	}
}

/* Not one of them is taken by any way */
static const char *const no_numbers[] = { "abc", "12x", "1 2", "", "-1", "4294967296", "0x",
					  "99999999999999999999" };

TEST(parameters_by_sysfs)
{
	struct rdmatensor_start start;
	const struct row *row;
	char text[32];
	size_t i;

	all_standard();
	EACH_ROW(row) {
		uint32_t ends[2] = { row->least, row->most };

		sysfs_is(row, standard_text(row));
		for (i = 0; i < 2; i++) {
			snprintf(text, sizeof(text), "%u\n", ends[i]);
			EQ(sysfs_set(row, text), 0);
			snprintf(text, sizeof(text), "%u", ends[i]);
			sysfs_is(row, text);
			companions(row, &start);
			holds(row, &start, ends[i], "sysfs");
		}
		snprintf(text, sizeof(text), "%llu", row->most + 1ull);
		CHECK(sysfs_set(row, text) < 0);
		if (row->least) {
			snprintf(text, sizeof(text), "%u", row->least - 1);
			EQ(sysfs_set(row, text), -EINVAL);
		}
		if (row->pow2) {
			snprintf(text, sizeof(text), "%u", row->most - 1);
			EQ(sysfs_set(row, text), -EINVAL);
		}
		for (i = 0; i < sizeof(no_numbers) / sizeof(*no_numbers); i++)
			if (no_numbers[i][0])
				CHECK(sysfs_set(row, no_numbers[i]) < 0);
		EQ(sysfs_set(row, "auto"), row->standard == RDMATENSOR_PARAM_AUTO ? 0 : -EINVAL);
		EQ(sysfs_set(row, standard_text(row)), 0);
		sysfs_is(row, standard_text(row));
	}
	as_the_suite_has_it();
}

/* What auto comes to on soft-RoCE, beside these tests' companions */
static uint64_t auto_is(const struct row *row)
{
	static const struct {
		const char *name;
		uint64_t value;
	} known[] = {
		{ "port", 1 }, { "mtu", 4096 }, { "ack_batch", 512 }, { "lane_bytes", 131072 },
		{ "sl", 0 }, { "traffic_class", 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(row->name, known[i].name))
			return known[i].value;
	/* The GID's place, which choice.sh is about: at least the same one each time */
	EQ(strcmp(row->name, "gid_index"), 0);
	return chosen(row);
}

TEST(parameters_by_start)
{
	struct rdmatensor_start start;
	const struct row *row;

	all_standard();
	EACH_ROW(row) {
		companions(row, &start);
		/* Those apart that another one's companion has set */
		if (!field(row, &start)) {
			EQ(begin(&start), 0);
			if (row->standard == RDMATENSOR_PARAM_AUTO)
				EQ(field(row, &start), auto_is(row));
			else
				EQ(field(row, &start), row->standard);
		}
		companions(row, &start);
		set_field(row, &start, row->most);
		holds(row, &start, row->most, "START");
		companions(row, &start);
		set_field(row, &start, row->least);
		holds(row, &start, row->least, "START");
		if (!row->bytes)
			continue;
		companions(row, &start);
		set_field(row, &start, row->most + 1ull);
		EQ(begin(&start), -EINVAL);
		CHECK(strstr(start.cause, row->name));
		if (row->least) {
			companions(row, &start);
			set_field(row, &start, row->least - 1);
			EQ(begin(&start), -EINVAL);
			CHECK(strstr(start.cause, row->name));
		}
		if (row->pow2) {
			companions(row, &start);
			set_field(row, &start, row->most - 1);
			EQ(begin(&start), -EINVAL);
		}
	}
	as_the_suite_has_it();
}

static int from_env(const struct row *row, const char *variable, const char *text,
		    struct rdmatensor_start *start)
{
	char cause[256] = "";
	int ret;

	companions(row, start);
	setenv(variable, text, 1);
	ret = rdmatensor_start_from_env(start, cause, sizeof(cause));
	unsetenv(variable);
	/* What is refused is told by its name */
	if (ret && !strstr(cause, variable))
		test_fail(__FILE__, __LINE__, "%s=%s: %s", variable, text, cause);
	return ret;
}

TEST(parameters_by_the_environment)
{
	struct rdmatensor_start start;
	const struct row *row;
	char text[32];
	size_t i;
	int way;

	EACH_ROW(row) {
		for (way = 0; way < (row->other ? 2 : 1); way++) {
			const char *variable = way ? row->other : row->variable;
			uint32_t ends[2] = { row->least, row->most };

			for (i = 0; i < 2; i++) {
				snprintf(text, sizeof(text), "%u", ends[i]);
				EQ(from_env(row, variable, text, &start), 0);
				holds(row, &start, ends[i], variable);
			}
			snprintf(text, sizeof(text), "%llu", row->most + 1ull);
			EQ(from_env(row, variable, text, &start), -EINVAL);
			if (row->least) {
				snprintf(text, sizeof(text), "%u", row->least - 1);
				EQ(from_env(row, variable, text, &start), -EINVAL);
			}
			if (row->pow2) {
				snprintf(text, sizeof(text), "%u", row->most - 1);
				EQ(from_env(row, variable, text, &start), -EINVAL);
			}
			for (i = 0; i < sizeof(no_numbers) / sizeof(*no_numbers); i++)
				if (no_numbers[i][0])
					EQ(from_env(row, variable, no_numbers[i], &start), -EINVAL);
			/* Set but empty is as good as not set */
			EQ(from_env(row, variable, "", &start), 0);
		}
	}
}

/* Another one of its values than @value */
static const char *other_default(const struct row *row, uint64_t value)
{
	static char text[16];

	snprintf(text, sizeof(text), "%u", value == row->least ? row->most : row->least);
	return text;
}

TEST(parameters_over_every_default)
{
	struct rdmatensor_start start;
	const struct row *row;
	uint64_t value;
	char text[16];
	int end;

	all_standard();
	EACH_ROW(row) {
		for (end = 0; end < 2; end++) {
			value = end ? row->most : row->least;
			EQ(sysfs_set(row, other_default(row, value)), 0);
			companions(row, &start);
			EQ(rdmatensor_start_set(&start, row->name, value), 0);
			holds(row, &start, value, "the library");
			snprintf(text, sizeof(text), "%u", (uint32_t)value);
			EQ(from_env(row, row->variable, text, &start), 0);
			holds(row, &start, value, row->variable);
		}
		companions(row, &start);
		EQ(rdmatensor_start_set(&start, row->name, row->most + 1ull), -EINVAL);
		if (row->standard == RDMATENSOR_PARAM_AUTO) {
			value = chosen(row);
			EQ(sysfs_set(row, other_default(row, value)), 0);
			companions(row, &start);
			EQ(rdmatensor_start_set(&start, row->name, RDMATENSOR_PARAM_AUTO), 0);
			chosen_holds(row, &start, value, "the library");
			EQ(from_env(row, row->variable, "auto", &start), 0);
			chosen_holds(row, &start, value, "auto in the environment");
		} else {
			companions(row, &start);
			EQ(rdmatensor_start_set(&start, row->name, RDMATENSOR_PARAM_AUTO), -EINVAL);
			EQ(from_env(row, row->variable, "auto", &start), -EINVAL);
		}
		EQ(sysfs_set(row, standard_text(row)), 0);
	}
	rdmatensor_start_init(&start, "params");
	EQ(rdmatensor_start_set(&start, "max_contexts", 1), -ENOENT);
	EQ(rdmatensor_start_set(&start, "no such", 1), -ENOENT);
	as_the_suite_has_it();
}

/* The default of a parameter, by its name */
static void host_has(const char *name, const char *text)
{
	const struct row row = { .name = name };

	EQ(sysfs_set(&row, text), 0);
}

/* A program that was built before START had its mask */
TEST(start_of_an_older_program)
{
	const size_t older = offsetof(struct rdmatensor_start, set);
	static const char *const changed[][2] = {
		{ "sl", "5" }, { "traffic_class", "96" }, { "lanes", "3" }, { "retry_count", "2" },
		{ "rnr_retry", "3" }, { "gid_index", "200" }, { "validate", "1" },
	};
	union {
		struct rdmatensor_start start;
		unsigned char bytes[sizeof(struct rdmatensor_start) + 64];
	} arg;
	struct rdmatensor_start *start = &arg.start;
	size_t i;

	all_standard();
	for (i = 0; i < sizeof(changed) / sizeof(*changed); i++)
		host_has(changed[i][0], changed[i][1]);
	memset(&arg, 0xa5, sizeof(arg));
	/* As such a program's header does */
	rdmatensor_start_init_sized(start, older, "older");
	EQ(start->size, older);

	/* What is 0 is the host's, and what is not, or has its flag, the program's */
	setenv("RDMA_TRAFFIC_CLASS", "8", 1);
	EQ(rdmatensor_start_from_env(start, NULL, 0), 0);
	unsetenv("RDMA_TRAFFIC_CLASS");
	start->flags |= RDMATENSOR_START_RETRY_COUNT | RDMATENSOR_START_GID_INDEX;
	start->rnr_retry = 6;
	EQ(begin(start), 0);
	EQ(start->sl, 5);
	EQ(start->traffic_class, 8);
	EQ(start->lanes, 3);
	EQ(start->retry_count, 0);
	EQ(start->rnr_retry, 3);
	EQ(start->gid_index, 0);
	EQ(start->port, 0);
	EQ(start->mtu, 0);
	CHECK(start->flags & RDMATENSOR_START_VALIDATE);
	for (i = older; i < sizeof(arg); i++)
		EQ(arg.bytes[i], 0xa5);

	rdmatensor_start_init_sized(start, older, "older");
	start->port = RDMATENSOR_PARAM_AUTO;
	EQ(begin(start), -EINVAL);
	all_standard();
	as_the_suite_has_it();
}

TEST(start_that_is_refused_can_be_asked_again)
{
	struct rdmatensor_start start, asked;
	struct rdmatensor *context;
	int again;

	EQ(rdmatensor_open(NULL, &context), 0);
	rdmatensor_start_init(&start, "params");
	EQ(rdmatensor_start_set(&start, "port", RDMATENSOR_PARAM_AUTO), 0);
	EQ(rdmatensor_start_set(&start, "sl", 0), 0);
	strcpy(start.device_name, "nosuch0");
	asked = start;
	for (again = 0; again < 2; again++) {
		EQ(rdmatensor_start(context, &start), -ENODEV);
		CHECK(strstr(start.cause, "nosuch0"));
		memset(start.cause, 0, sizeof(start.cause));
		CHECK(!memcmp(&start, &asked, sizeof(start)));
	}
	start.device_name[0] = '\0';
	EQ(rdmatensor_start(context, &start), 0);
	EQ(start.port, 1);
	CHECK(start.set & RDMATENSOR_SET_SL && !(start.set & RDMATENSOR_SET_TRAFFIC_CLASS));
	/* Its answer is as good an argument */
	rdmatensor_close(context);
	asked = start;
	EQ(begin(&start), 0);
	memcpy(start.cause, asked.cause, sizeof(start.cause));
	CHECK(!memcmp(&start, &asked, sizeof(start)));
}

static void set_device(const char *name, int error)
{
	static const struct row device = { .name = "device" };

	EQ(sysfs_set(&device, name), error);
	sysfs_is(&device, error ? "" : name);
}

TEST(device_by_sysfs)
{
	struct rdmatensor_start start;
	const char *device = getenv("LAB_RDMA_DEV");

	set_device("a name that is none", -EINVAL);
	set_device("0123456789012345678901234567890123456789012345678901234567890123", -EINVAL);
	set_device("nosuch0", 0);
	rdmatensor_start_init(&start, "params");
	EQ(begin(&start), -ENODEV);
	CHECK(strstr(start.cause, "nosuch0"));
	/* START's own comes first */
	rdmatensor_start_init(&start, "params");
	snprintf(start.device_name, sizeof(start.device_name), "%s", device ? device : "rxe0");
	EQ(begin(&start), 0);
	set_device("", 0);
	rdmatensor_start_init(&start, "params");
	EQ(begin(&start), 0);
}

static void two_pools(struct rdmatensor_start *start)
{
	start->max_pools = 2;
}

TEST(pool_limit)
{
	struct rdmatensor_pool second, third;
	static struct side s;

	side_open(&s, "pools", 4096, 0, two_pools);
	EQ(rdmatensor_pool_create(s.rt, 4096, &second), 0);
	EQ(rdmatensor_pool_create(s.rt, 4096, &third), -EUSERS);
	EQ(rdmatensor_pool_destroy(s.rt, &second), 0);
	EQ(rdmatensor_pool_create(s.rt, 4096, &third), 0);
	EQ(rdmatensor_pool_destroy(s.rt, &third), 0);
}

static void in_a_workqueue(struct rdmatensor_start *start)
{
	start->cq_poll = 2;
	start->lanes = 2;
	start->stripe_bytes = 1000;
}

TEST(completions_in_a_workqueue)
{
	static struct pair p;
	struct rdmatensor_cqe cqe;
	uint64_t at;
	int i;

	pair_open(&p, 4 << 20, in_a_workqueue);
	for (i = 0; i < 50; i++) {
		publish(&p.a, "w", i, 9000, i, 1, i);
		EQ(fetch(&p.b, "w", i, 9000, &at, &cqe), 0);
		CHECK(filled(side_at(&p.b, at), 9000, i));
		EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, at), 0);
	}
}
