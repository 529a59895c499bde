// SPDX-License-Identifier: GPL-2.0
/* Compare the results of two kernels: read both folders, judge, write the reports. */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare.h"

struct kernel {
	const char *path;
	struct boot *boots;
	size_t nr;
};

static struct kernel base, queue;
static struct row *rows;

/* Room for one element after the first nr, zeroed; arrays double in size. */
void *grow(void *array, size_t nr, size_t size)
{
	if (!(nr & (nr - 1))) {
		array = reallocarray(array, nr ? 2 * nr : 1, size);
		if (!array)
			err(1, NULL);
	}
	memset((char *)array + nr * size, 0, size);
	return array;
}

char *format(const char *fmt, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		err(1, NULL);
	return text;
}

char *read_text(const char *path)
{
	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t len = 0, size = 0;
	struct stat st;
	char *text = NULL;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", path);
	if (!S_ISREG(st.st_mode))
		errx(1, "%s: not a regular file", path);
	do {
		if (size - len < 2) {
			size = size ? 2 * size : 4096;
			text = realloc(text, size);
			if (!text)
				err(1, NULL);
		}
		got = read(fd, text + len, size - len - 1);
		if (got < 0)
			err(1, "%s", path);
		len += got;
	} while (got);
	close(fd);

	text[len] = '\0';
	if (!len)
		errx(1, "%s: empty", path);
	if (strlen(text) != len)
		errx(1, "%s: a NUL byte at offset %zu", path, strlen(text));
	return text;
}

static int visible(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* The names in a folder, 2 before 10.  Nobody makes an empty folder on purpose. */
size_t list(const char *path, struct dirent ***entries)
{
	int nr = scandir(path, entries, visible, versionsort);

	if (nr < 0)
		err(1, "%s", path);
	if (!nr)
		errx(1, "%s: empty", path);
	return nr;
}

void add_figure(struct job *job, const char *unit, double value, double step,
		const char *fmt, ...)
{
	struct figure *figure;
	va_list args;

	job->figures = grow(job->figures, job->nr, sizeof(*job->figures));
	figure = &job->figures[job->nr++];
	va_start(args, fmt);
	vsnprintf(figure->name, sizeof(figure->name), fmt, args);
	va_end(args);
	figure->unit = unit;
	figure->value = value;
	figure->step = step;
}

static int by_name(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	return strverscmp(x->name, y->name);
}

/* Names end up in three formats: let none of them need quoting. */
static void check_name(const char *dir, const char *name)
{
	for (const char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("._+=,:@%-", *c))
			errx(1, "%s/%s: unusable name", dir, name);
	}
}

/* fio and gup results both lie two levels below their kind. */
static void read_jobs(struct boot *boot, const char *kind,
		      void (*load)(const char *path, struct job *job))
{
	char *top = format("%s/%s", boot->path, kind);
	size_t first = boot->nr, nr_groups;
	struct dirent **groups, **entries;

	if (access(top, F_OK) && errno == ENOENT) {
		free(top);
		return;
	}
	nr_groups = list(top, &groups);
	for (size_t i = 0; i < nr_groups; i++) {
		char *dir = format("%s/%s", top, groups[i]->d_name);
		size_t nr = list(dir, &entries);

		check_name(top, groups[i]->d_name);
		for (size_t j = 0; j < nr; j++) {
			char *path = format("%s/%s", dir, entries[j]->d_name);
			struct job *job;

			check_name(dir, entries[j]->d_name);
			boot->jobs = grow(boot->jobs, boot->nr, sizeof(*boot->jobs));
			job = &boot->jobs[boot->nr++];
			job->file = format("%s", path + strlen(boot->path) + 1);
			job->name = format("%s", job->file);
			load(path, job);
			free(path);
			free(entries[j]);
		}
		free(entries);
		free(dir);
		free(groups[i]);
	}
	free(groups);
	free(top);
	qsort(boot->jobs + first, boot->nr - first, sizeof(*boot->jobs), by_name);
}

static void read_kernel(struct kernel *kernel, const char *path)
{
	struct dirent **entries;
	size_t nr = list(path, &entries);

	kernel->path = path;
	for (size_t i = 0; i < nr; i++) {
		char *dir = format("%s/%s", path, entries[i]->d_name);
		struct boot *boot;
		struct stat st;

		if (stat(dir, &st))
			err(1, "%s", dir);
		if (S_ISDIR(st.st_mode)) {
			kernel->boots = grow(kernel->boots, kernel->nr, sizeof(*kernel->boots));
			boot = &kernel->boots[kernel->nr++];
			boot->path = dir;
			read_jobs(boot, "gup", gup_load);
			read_jobs(boot, "fio", fio_load);
		} else {
			free(dir);
		}
		free(entries[i]);
	}
	free(entries);
	if (!kernel->nr)
		errx(1, "%s: no boots", path);
}

/* The job of that name in a boot; every job that one boot has, all must have. */
static const struct job *find_job(const struct boot *boot, const struct job *like,
				  const struct boot *other)
{
	for (size_t i = 0; i < boot->nr; i++) {
		if (!strcmp(boot->jobs[i].name, like->name))
			return &boot->jobs[i];
	}
	errx(1, "%s/%s: missing, but %s has it", boot->path, like->file, other->path);
}

static const struct figure *find_figure(const struct boot *boot, const struct job *job,
					const char *name, const struct boot *other)
{
	for (size_t i = 0; i < job->nr; i++) {
		if (!strcmp(job->figures[i].name, name))
			return &job->figures[i];
	}
	errx(1, "%s/%s: no %s, but %s has it", boot->path, job->file, name, other->path);
}

static void check_same(const struct boot *first, const struct boot *boot)
{
	for (size_t i = 0; i < boot->nr; i++) {
		const struct job *job = &boot->jobs[i], *like = find_job(first, job, boot);

		for (size_t j = 0; j < job->nr; j++)
			find_figure(first, like, job->figures[j].name, boot);
	}
}

static void fill_side(struct side *side, const struct kernel *kernel,
		      const struct boot *first, const struct job *like, const char *name)
{
	side->nr = kernel->nr;
	side->boots = calloc(side->nr, sizeof(*side->boots));
	if (!side->boots)
		err(1, NULL);
	for (size_t i = 0; i < side->nr; i++) {
		const struct boot *boot = &kernel->boots[i];
		const struct job *job = find_job(boot, like, first);
		const struct figure *figure = find_figure(boot, job, name, first);

		side->boots[i] = figure->value;
		if (figure->step > side->step)
			side->step = figure->step;
	}
	sum_up(side);
}

/* Under icount a nanosecond of guest time is an instruction. */
static const char *unit_in(const char *mode, const char *unit)
{
	return strcmp(mode, "icount") || strcmp(unit, "ns/page") ? unit : "instructions/page";
}

static size_t compare(const char *mode)
{
	const struct boot *first = &base.boots[0];
	size_t nr = 0;

	for (size_t i = 0; i < base.nr; i++)
		check_same(first, &base.boots[i]);
	for (size_t i = 0; i < queue.nr; i++)
		check_same(first, &queue.boots[i]);

	for (size_t i = 0; i < first->nr; i++) {
		const struct job *job = &first->jobs[i];

		for (size_t j = 0; j < job->nr; j++) {
			const struct figure *figure = &job->figures[j];
			struct row *row;

			rows = grow(rows, nr, sizeof(*rows));
			row = &rows[nr++];
			row->job = job->name;
			row->figure = figure->name;
			row->unit = unit_in(mode, figure->unit);
			fill_side(&row->base, &base, first, job, figure->name);
			fill_side(&row->queue, &queue, first, job, figure->name);
			judge(row);
		}
	}
	if (!nr)
		errx(1, "%s, %s: no jobs", base.path, queue.path);
	return nr;
}

static void read_run(struct report *report, const char *path)
{
	static const char * const modes[] = { "icount", "tcg", "kvm", "host" };
	json_error_t error;
	json_t *run, *mode;
	char *text;

	report->run_text = "{}";
	report->mode = "host";
	if (!path) {
		report->run = json_object();
		return;
	}

	text = read_text(path);
	run = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!run)
		errx(1, "%s:%d: %s", path, error.line, error.text);
	if (!json_is_object(run))
		errx(1, "%s: not an object", path);
	report->run_text = text;
	report->run = run;

	mode = json_object_get(run, "mode");
	if (!mode)
		return;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (json_is_string(mode) && !strcmp(json_string_value(mode), modes[i])) {
			report->mode = modes[i];
			return;
		}
	}
	errx(1, "%s: mode: not one of icount, tcg, kvm, host", path);
}

static struct output {
	const char *name;
	void (*print)(FILE *out, const struct report *report);
	char *path, *tmp;
} outputs[] = {
	{ .name = "report.json", .print = report_json },
	{ .name = "report.md", .print = report_markdown },
	{ .name = "report.txt", .print = report_text },
};

#define for_each_output(o) for (o = outputs; o < outputs + sizeof(outputs) / sizeof(*outputs); o++)

static void discard_outputs(void)
{
	struct output *o;

	for_each_output(o) {
		if (o->tmp)
			unlink(o->tmp);
	}
}

/* An old report is replaced only when all of the new one is on the disk. */
static void write_report(const struct report *report, const char *dir)
{
	mode_t mask = umask(0);
	struct output *o;

	umask(mask);
	if (mkdir(dir, 0777) && errno != EEXIST)
		err(1, "%s", dir);
	atexit(discard_outputs);
	for_each_output(o) {
		char *tmp = format("%s/.%s.XXXXXX", dir, o->name);
		int fd = mkstemp(tmp);
		FILE *out;

		o->path = format("%s/%s", dir, o->name);
		if (fd < 0)
			err(1, "%s", o->path);
		o->tmp = tmp;
		out = fdopen(fd, "w");
		if (!out)
			err(1, "%s", o->path);
		o->print(out, report);
		if (fflush(out) || ferror(out) || fchmod(fd, 0666 & ~mask) || fsync(fd) ||
		    fclose(out))
			err(1, "%s", o->path);
	}
	for_each_output(o) {
		if (rename(o->tmp, o->path))
			err(1, "%s", o->path);
		free(o->tmp);
		o->tmp = NULL;
	}
	printf("%s/report.txt\n", dir);
}

static void usage(FILE *out)
{
	fputs("usage: compare [-r RUN.json] [-o DIR] BASE QUEUE\n"
	      "\n"
	      "Compare the results of two kernels.  BASE and QUEUE hold a folder for each boot;\n"
	      "a boot holds fio/DEVICE/NAME.json and\n"
	      "gup/KIND/NR/{get.txt,pin.txt,slow.txt,longterm.txt,size}.\n"
	      "\n"
	      "  -r, --run=RUN.json  what was run: any keys; mode is icount, tcg, kvm or host\n"
	      "  -o, --output=DIR    write report.json, report.md and report.txt to DIR and\n"
	      "                      print the path of the last, instead of its text\n"
	      "  -h, --help          print this\n", out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "run", required_argument, NULL, 'r' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const char *run = NULL, *dir = NULL;
	struct report report = {};
	int opt;

	while ((opt = getopt_long(argc, argv, "r:o:h", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			run = optarg;
			break;
		case 'o':
			dir = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (argc - optind != 2) {
		usage(stderr);
		return 2;
	}

	read_run(&report, run);
	read_kernel(&base, argv[optind]);
	read_kernel(&queue, argv[optind + 1]);
	report.nr = compare(report.mode);
	report.rows = rows;

	if (dir)
		write_report(&report, dir);
	else
		report_text(stdout, &report);
	if (fflush(stdout) || ferror(stdout))
		err(1, "stdout");
	exit(0);
}
