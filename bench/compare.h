/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compare: put the results of two kernels beside each other.
 *
 * A complaint about the input ends the program (err.h) before anything is
 * written, so no function here returns an error. What is read stays allocated
 * until exit.
 */
#ifndef COMPARE_H
#define COMPARE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* No input may be larger: a counter that says so is broken. */
#define ABSURD 1e18

/* One figure of one job in one boot. */
struct figure {
	char name[32];
	const char *unit;
	double value;
	double step;		/* what one tick of the clock or counter behind it is worth */
};

struct job {
	char *name;		/* fio/DEVICE/NAME or gup/KIND/NR */
	char *file;		/* where it was read, below the boot's folder */
	struct figure *figures;
	size_t nr;
};

struct boot {
	char *path;
	struct job *jobs;
	size_t nr;
};

/* One figure on one side: the boots in order, and what sums them up. */
struct side {
	double *boots;
	size_t nr;
	double step;		/* the coarsest of the boots' */
	double min, median, max;
};

struct row {
	const char *job, *figure, *unit;
	struct side base, queue;
	double ratio, noise;	/* NAN: there is none */
	const char *verdict;
};

struct report {
	const char *run_text;	/* RUN.json as it was written */
	const json_t *run;
	const char *mode;
	const struct row *rows;
	size_t nr;
};

/* compare.c */
void *grow(void *array, size_t nr, size_t size);
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *read_text(const char *path);
size_t list(const char *path, struct dirent ***entries);
void add_figure(struct job *job, const char *unit, double value, double step,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* fio.c */
void fio_load(const char *path, struct job *job);

/* gup.c */
bool decimal(const char **text, double *value);
void gup_load(const char *path, struct job *job);

/* stats.c */
int by_value(const void *a, const void *b);
double median(const double *values, size_t nr);
void sum_up(struct side *side);
void judge(struct row *row);

/* report.c */
void report_json(FILE *out, const struct report *report);
void report_text(FILE *out, const struct report *report);
void report_markdown(FILE *out, const struct report *report);

#endif /* COMPARE_H */
