/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands of the tool, run while the world about them fails: what they are (scenes), how
 * one is run (run), what must be true afterwards (judge), and the two ways of failing: each
 * call in turn (calls), and signals at any moment (kill).
 */
#ifndef ROUGH_H
#define ROUGH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All that is written is in here, and nothing else */
#define FOLDER "/tmp/rough"
#define OUTPUT FOLDER "/output"
#define MODEL FOLDER "/model"
#define GRAPH FOLDER "/graph"
/* What a second command beside the first writes */
#define BESIDE "/tmp/rough-beside"

#define TEXT 65536
#define ARGS 24

/**
 * enum ends - how a command comes to its end
 * @ENDS_ITSELF: when it has done what it is to do
 * @ENDS_TOLD: by a signal, when it has said something
 * @ENDS_HEARD: as before, and it says something when contexts come
 */
enum ends { ENDS_ITSELF, ENDS_TOLD, ENDS_HEARD };

/**
 * enum writes - what it makes of OUTPUT
 * @WRITES_NOTHING: nothing
 * @WRITES_NEW: there is none before
 * @WRITES_OVER: there is one before
 */
enum writes { WRITES_NOTHING, WRITES_NEW, WRITES_OVER };

/**
 * struct scene - a command
 * @name: of the case
 * @line: program and arguments, with words that begin with @ to be replaced
 * @beside: a command that has to run at the same time, or NULL
 * @ends: how it ends
 * @writes: what it does to OUTPUT
 * @no_tmpfile: on a file system where all files have names
 * @killed: it is one of those that are killed, too
 * @quick: it is run where there is little time
 * @sparse: of its calls, which are many and alike, each of so many fails; 0: all
 */
struct scene {
	const char *name;
	const char *line;
	const char *beside;
	enum ends ends;
	enum writes writes;
	bool no_tmpfile;
	bool killed;
	bool quick;
	unsigned int sparse;
};

extern const struct scene scenes[];
extern const size_t nr_scenes;

/**
 * struct outcome - of a run
 * @status: as waitpid() has it
 * @hung: it had to be killed
 * @out: what it printed
 * @err: and on stderr
 * @struck: the call that has failed, and its object; "": none
 * @ns: how long it took
 */
struct outcome {
	int status;
	bool hung;
	char out[TEXT];
	char err[TEXT];
	char struck[4200];
	uint64_t ns;
};

/**
 * struct blow - what is done to a command
 * @how: name of a mode of fail.c, or NULL
 * @at: number of the call that fails
 * @signal: that it is sent; 0: none
 * @after_ns: so long after it has begun
 */
struct blow {
	const char *how;
	long at;
	int signal;
	uint64_t after_ns;
};

/* scenes.c: the files of all scenes, and the peers that they need; ends the program if it cannot */
void scenes_begin(const char *bin, const char *fail, const char *address);
void scenes_end(void);
/* Argv of @line, all of which is the caller's to free */
void scene_argv(const char *line, char *argv[ARGS]);

/* run.c */
void run(const struct scene *scene, const struct blow *blow, struct outcome *outcome);
/* Begins it; its stdout can be read from *out, or goes to @err if that is NULL */
pid_t spawn(char *const argv[], char *const env[], int *out, int err, int tell);
/* Until the process has ended: true; or @ns have passed */
bool wait_end(pid_t pid, uint64_t ns);
uint64_t now_ns(void);

/* judge.c: each returns NULL, or what is wrong */

/* What it is without a blow, which @outcome has to agree with from now on */
const char *judge_baseline(const struct scene *scene, const struct outcome *outcome);
/* After a call has failed */
const char *judge_call(const struct scene *scene, const struct blow *blow,
		       const struct outcome *outcome);
/* After a signal */
const char *judge_kill(const struct scene *scene, const struct blow *blow,
		       const struct outcome *outcome);

/* calls.c, kill.c: cases; the number of those that failed. @quick: only the quick scenes */
int calls(const char *pattern, bool quick, unsigned int every, unsigned int seed);
int kills(const char *pattern, bool quick, unsigned int moments, unsigned int seed);

/* main.c */
void result(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void __attribute__((noreturn)) die(const char *what);

#endif
