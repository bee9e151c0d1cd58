// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rough.h"

#define FILE_MOST 2000000
/* What OUTPUT has before a run that writes over it */
#define FORMER "what was there before\n"

/* Of the scene as it is without a blow */
static char expected[TEXT];
static int expected_status;
static char written[FILE_MOST];
static size_t written_bytes;
static char why[6000];

static const char *wrong(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return why;
}

static bool is_word_of_hex(const char *text, size_t len)
{
	return len >= 16 && strspn(text, "0123456789abcdef") >= len;
}

/* Figures differ from run to run: each becomes #, and blanks one blank */
static void normalise(const char *from, char *to)
{
	size_t len;

	while (*from) {
		for (len = 0; isalnum((unsigned char)from[len]); len++)
			;
		if (is_word_of_hex(from, len)) {
			*to++ = '#';
			from += len;
		} else if (isdigit((unsigned char)*from)) {
			*to++ = '#';
			from += strspn(from, "0123456789.");
			len = *from == 'e' ? 1 + strspn(from + 1, "+-") : 0;
			if (len && isdigit((unsigned char)from[len]))
				from += len + strspn(from + len, "0123456789");
		} else if (*from == ' ') {
			*to++ = ' ';
			from += strspn(from, " ");
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

/*
 * Of doctor's findings what was looked at and how it is: a device's name or an MTU besides is
 * left out where it cannot be read
 */
static void cut_findings(char *text)
{
	char *to = text, *end;

	while (*text) {
		if (!strncmp(text, "\"text\":\"", 8)) {
			end = strchr(text + 8, '"');
			text = end ? end + 1 : text + strlen(text);
			continue;
		}
		*to++ = *text++;
		/* In a line, verdict and name come first */
		if (to[-1] != '\n' || (strncmp(text, "OK ", 3) && strncmp(text, "WARN ", 5)))
			continue;
		end = strchr(text, ' ') + 1;
		end += strcspn(end, " \n");
		memmove(to, text, (size_t)(end - text));
		to += end - text;
		text = end + strcspn(end, "\n");
	}
	*to = '\0';
}

/* What a command has printed, without what differs from run to run */
static void normalise_out(const struct scene *scene, const char *out, char *to)
{
	char *event;

	normalise(out, to);
	if (strstr(scene->line, " doctor"))
		cut_findings(to);
	if (scene->ends != ENDS_HEARD)
		return;
	/* How much it has heard, and which end of a life comes first, is not its own */
	to[strcspn(to, "\n")] = '\0';
	event = strstr(to, "start");
	if (event) {
		memmove(event, event + 2, strlen(event + 2) + 1);
		memcpy(event, "end", 3);
	}
}

/* Its bytes; -1: it is not there */
static ssize_t file_of(const char *path, char *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -1;
	got = read(fd, to, FILE_MOST);
	close(fd);
	return got;
}

static bool is_new(const char *path)
{
	static char bytes[FILE_MOST];
	ssize_t got = file_of(path, bytes);

	return got == (ssize_t)written_bytes && !memcmp(bytes, written, written_bytes);
}

static bool is_former(void)
{
	char bytes[FILE_MOST];
	ssize_t got = file_of(OUTPUT, bytes);

	return got == (ssize_t)strlen(FORMER) && !memcmp(bytes, FORMER, strlen(FORMER));
}

/* What may be in the folder besides: a whole file that the command has told of, or @left */
static const char *judge_folder(const struct outcome *outcome, bool left)
{
	char path[PATH_MAX];
	struct dirent *entry;
	const char *bad = NULL;
	DIR *dir = opendir(FOLDER);

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), FOLDER "/%s", entry->d_name);
		if (entry->d_name[0] == '.' && !entry->d_name[1 + (entry->d_name[1] == '.')])
			continue;
		if (!strcmp(path, OUTPUT) || !strcmp(path, MODEL) || !strcmp(path, GRAPH))
			continue;
		if (strncmp(entry->d_name, ".rdmatensor.", 12) ||
		    (!left && !(strstr(outcome->err, path) && is_new(path))))
			bad = wrong("%s is left", path);
		unlink(path);
	}
	closedir(dir);
	return bad;
}

/* True: it has its new content */
static const char *judge_output(const struct scene *scene, bool *is_done)
{
	*is_done = scene->writes == WRITES_NOTHING || is_new(OUTPUT);
	if (*is_done)
		return NULL;
	if (scene->writes == WRITES_NEW ? access(OUTPUT, F_OK) != 0 : is_former())
		return NULL;
	return wrong("%s is neither what it was nor what it should be", OUTPUT);
}

static const char *judge_beside(const struct scene *scene, bool must)
{
	static char model[FILE_MOST], got[FILE_MOST];
	ssize_t model_bytes, bytes;

	if (!scene->beside || scene->ends != ENDS_TOLD)
		return NULL;
	model_bytes = file_of(MODEL, model);
	bytes = file_of(BESIDE, got);
	unlink(BESIDE);
	if (bytes < 0 && !must)
		return NULL;
	return bytes == model_bytes && !memcmp(model, got, (size_t)bytes) ? NULL :
	       wrong("what was served is not the file");
}

static void put_former(const struct scene *scene)
{
	int fd;

	unlink(OUTPUT);
	if (scene->writes != WRITES_OVER)
		return;
	fd = open(OUTPUT, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, FORMER, strlen(FORMER)) != (ssize_t)strlen(FORMER))
		die(OUTPUT);
	close(fd);
}

static const char *judge_end(const struct outcome *outcome)
{
	if (outcome->hung)
		return wrong("it hangs");
	if (WIFSIGNALED(outcome->status))
		return wrong("it ends by signal %d", WTERMSIG(outcome->status));
	return WEXITSTATUS(outcome->status) > 2 ?
	       wrong("its status is %d", WEXITSTATUS(outcome->status)) : NULL;
}

const char *judge_baseline(const struct scene *scene, const struct outcome *outcome)
{
	const char *bad = judge_end(outcome);
	ssize_t bytes;

	normalise_out(scene, outcome->out, expected);
	expected_status = outcome->status;
	bytes = scene->writes == WRITES_NOTHING ? 0 : file_of(OUTPUT, written);
	written_bytes = bytes > 0 ? (size_t)bytes : 0;
	if (!bad && outcome->struck[0])
		bad = wrong("a call has failed: %s", outcome->struck);
	if (!bad && outcome->status && !strstr(scene->line, "doctor"))
		bad = wrong("its status is %d", WEXITSTATUS(outcome->status));
	if (!bad && (bytes < 0 || (!*expected && !strstr(scene->line, " set "))))
		bad = wrong("it has done nothing");
	if (!bad)
		bad = judge_folder(outcome, false);
	if (!bad)
		bad = judge_beside(scene, true);
	put_former(scene);
	return bad;
}

/* Words for what is no file of ours */
static const char *const objects[] = {
	"/dev/rdmatensor", "netlink", "pool", "region of", "tensor \"", "table", "start: ", "START: ",
	"write the output", "completion ring", "weights", "connect", "address", "features",
	"query", "gather: ", "export", "stdout", "channel", "itself", "set lanes", "index of", "memory", "module",
	"its state", "route to ", "the node's thread", "get: ", "tensors of ",
};

static bool names_object(const struct outcome *outcome, const char *text)
{
	const char *object = strchr(outcome->struck, ' ') + 1;
	static const char *const files[] = { OUTPUT, MODEL, GRAPH };
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(object, files[i]))
			return strstr(text, files[i]);
	/* A nameless file, or the folder, or another name in it */
	if (!strncmp(object, FOLDER "/", strlen(FOLDER "/")) || !strcmp(object, FOLDER))
		return strstr(text, OUTPUT);
	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (strstr(text, objects[i]))
			return true;
	return *object == '/' && strstr(text, object);
}

static const char *judge_text(const struct blow *blow, const struct outcome *outcome)
{
	static char text[2 * TEXT];
	const char *line;
	size_t used;

	/* doctor's is in its report, in a line that is not OK */
	used = (size_t)snprintf(text, sizeof(text), "%s", outcome->err);
	for (line = outcome->out; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, "OK ", 3))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s\n",
						 (int)strcspn(line, "\n"), line);
	if (!strcmp(blow->how, "ENOMEM") && strcasestr(outcome->err, "out of memory"))
		return NULL;
	if (!*outcome->err && !strstr(outcome->out, "FAIL") && !strstr(outcome->out, "WARN"))
		return wrong("it says nothing");
	return names_object(outcome, text) ? NULL : wrong("its text names no object");
}

const char *judge_call(const struct scene *scene, const struct blow *blow,
		       const struct outcome *outcome)
{
	/* An example leaves out what a program of its kind needs not */
	bool must_live = !strcmp(blow->how, "short") ||
			 (!strcmp(blow->how, "EINTR") && !strncmp(scene->line, "rdmatensor ", 11));
	const char *bad = judge_end(outcome);
	char got[TEXT];
	bool is_done;

	if (!bad)
		bad = judge_folder(outcome, false);
	if (!bad)
		bad = judge_output(scene, &is_done);
	if (!bad)
		bad = judge_beside(scene, !outcome->status);
	normalise_out(scene, outcome->out, got);
	/* A monitor that says what it has not heard has done its work */
	if (scene->ends == ENDS_HEARD && strstr(got, "lost"))
		strcpy(got, expected);
	if (!bad && (outcome->status == expected_status || must_live)) {
		if (outcome->status != expected_status)
			bad = wrong("it does not go on: status %d", WEXITSTATUS(outcome->status));
		else if (!is_done)
			bad = wrong("its status is %d, and the file is not written",
				    WEXITSTATUS(outcome->status));
		else if (strcmp(got, expected) && !outcome->status)
			bad = wrong("its status is 0, and it prints:\n%s\nand not:\n%s", got,
				    expected);
	} else if (!bad && !outcome->status) {
		bad = wrong("its status is 0");
	}
	if (!bad && (outcome->status || strcmp(got, expected)))
		bad = judge_text(blow, outcome);
	put_former(scene);
	unlink(BESIDE);
	return bad;
}

const char *judge_kill(const struct scene *scene, const struct blow *blow,
		       const struct outcome *outcome)
{
	const char *bad = NULL;
	bool is_done = true;

	if (outcome->hung)
		bad = wrong("it does not end");
	else if (WIFSIGNALED(outcome->status) && WTERMSIG(outcome->status) != blow->signal)
		bad = wrong("it ends by signal %d", WTERMSIG(outcome->status));
	else if (!WIFSIGNALED(outcome->status) && outcome->status)
		bad = wrong("its status is %d", WEXITSTATUS(outcome->status));
	/*
	 * What has a name and cannot be removed: all of it where files have names, and else
	 * what is about to replace a file
	 */
	if (!bad)
		bad = judge_folder(outcome, blow->signal == SIGKILL &&
				   (scene->no_tmpfile || scene->writes == WRITES_OVER));
	if (!bad)
		bad = judge_output(scene, &is_done);
	if (!bad && !WIFSIGNALED(outcome->status) && !is_done)
		bad = wrong("its status is 0, and the file is not written");
	if (!bad)
		bad = judge_beside(scene, false);
	put_former(scene);
	return bad;
}
