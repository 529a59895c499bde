// SPDX-License-Identifier: GPL-2.0
/* Print a comparison: for programs (JSON), for a terminal (text), for a mail (Markdown). */
#include <ctype.h>
#include <err.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

static json_t *number_or_null(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *boots(const struct side *side)
{
	json_t *array = json_array();

	for (size_t i = 0; i < side->nr; i++)
		json_array_append_new(array, json_real(side->boots[i]));
	return array;
}

/* The run is copied as text: reading and printing numbers may change how they look. */
void report_json(FILE *out, const struct report *report)
{
	fprintf(out, "{\"run\": %s,\n\"figures\": [\n", report->run_text);
	for (size_t i = 0; i < report->nr; i++) {
		const struct row *row = &report->rows[i];
		json_t *json = json_pack("{ss ss ss sf sf so so ss so so}",
			"job", row->job, "figure", row->figure, "unit", row->unit,
			"base", row->base.median, "queue", row->queue.median,
			"ratio", number_or_null(row->ratio),
			"noise", number_or_null(row->noise), "verdict", row->verdict,
			"base_boots", boots(&row->base), "queue_boots", boots(&row->queue));
		char *text = json ? json_dumps(json, 0) : NULL;

		if (!text)
			errx(1, "%s %s: not representable in JSON", row->job, row->figure);
		fprintf(out, "%s%s\n", text, i + 1 < report->nr ? "," : "");
		free(text);
		json_decref(json);
	}
	fputs("]}\n", out);
}

#define MAX_COLS 8

struct table {
	size_t cols, left;	/* the first `left` columns are words, the others numbers */
	char **cells;
	size_t nr;
};

static void __attribute__((format(printf, 2, 3)))
cell(struct table *table, const char *fmt, ...)
{
	va_list args;

	table->cells = grow(table->cells, table->nr, sizeof(*table->cells));
	va_start(args, fmt);
	if (vasprintf(&table->cells[table->nr++], fmt, args) < 0)
		err(1, NULL);
	va_end(args);
}

static void head(struct table *table, const char * const *names)
{
	for (size_t i = 0; i < table->cols; i++)
		cell(table, "%s", names[i]);
}

/* Columns, not bytes: UTF-8 continuation bytes take no room. */
static int width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void print_row(FILE *out, const struct table *table, char * const *cells,
		      const int *widths, bool md)
{
	for (size_t col = 0; col < table->cols; col++) {
		int room = widths[col] - width(cells[col]);
		bool left = col < table->left;

		fputs(md ? "| " : col ? "  " : "", out);
		fprintf(out, "%*s%s%*s", left ? 0 : room, "", cells[col], left ? room : 0, "");
		fputs(md ? " " : "", out);
	}
	fputs(md ? "|\n" : "\n", out);
}

/* Print and empty a table, the first row of which is its head. */
static void print_table(FILE *out, struct table *table, bool md)
{
	char *rules[MAX_COLS];
	int widths[MAX_COLS] = {};

	for (size_t i = 0; i < table->nr; i++) {
		int *widest = &widths[i % table->cols];

		if (*widest < width(table->cells[i]))
			*widest = width(table->cells[i]);
	}
	for (size_t col = 0; col < table->cols; col++) {
		rules[col] = format("%*s", widths[col], "");
		memset(rules[col], '-', widths[col]);
		if (md && col >= table->left)
			rules[col][widths[col] - 1] = ':';
	}

	for (size_t i = 0; i < table->nr; i += table->cols) {
		print_row(out, table, &table->cells[i], widths, md);
		if (!i)
			print_row(out, table, rules, widths, md);
	}
	fputs("\n", out);

	for (size_t col = 0; col < table->cols; col++)
		free(rules[col]);
	for (size_t i = 0; i < table->nr; i++)
		free(table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->nr = 0;
}

/* What a row is printed in: one unit and one number of decimals for all its numbers. */
struct scale {
	const char *unit;
	double by;
	int decimals;
};

static struct scale scale_of(const struct row *row)
{
	static const struct {
		const char *unit;
		struct scale scale;
	} scales[] = {
		{ "ns", { "us", 1e3, 0 } },
		{ "ns", { "ms", 1e6, 0 } },
		{ "ns", { "s", 1e9, 0 } },
		{ "IOPS", { "kIOPS", 1e3, 0 } },
		{ "IOPS", { "MIOPS", 1e6, 0 } },
		{ "B/s", { "kB/s", 1e3, 0 } },
		{ "B/s", { "MB/s", 1e6, 0 } },
		{ "B/s", { "GB/s", 1e9, 0 } },
	};
	struct scale scale = { row->unit, 1, 0 };
	double value = fmax(row->base.median, row->queue.median);

	for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++) {
		if (!strcmp(row->unit, scales[i].unit) && value >= scales[i].scale.by)
			scale = scales[i].scale;
	}
	/* Four digits tell a tenth of a per cent. */
	for (value /= scale.by; scale.decimals < 3 && value < 1000; value *= 10)
		scale.decimals++;
	return scale;
}

static void value_cell(struct table *table, const struct scale *scale, double value)
{
	cell(table, "%.*f", scale->decimals, value / scale->by);
}

static void range_cell(struct table *table, const struct scale *scale, const struct side *side)
{
	cell(table, "%.*f..%.*f", scale->decimals, side->min / scale->by,
	     scale->decimals, side->max / scale->by);
}

static bool beyond_noise(const struct row *row)
{
	return !strcmp(row->verdict, "higher") || !strcmp(row->verdict, "lower");
}

static void difference_cell(struct table *table, const struct row *row)
{
	if (isnan(row->ratio))
		cell(table, "-");
	else
		cell(table, "%s%+.2f", beyond_noise(row) ? "* " : "", 100 * (row->ratio - 1));
}

static void noise_cell(struct table *table, const struct row *row)
{
	if (isnan(row->noise))
		cell(table, "-");
	else
		cell(table, "%.2f", 100 * row->noise);
}

/* Print a value of the run, or what is in it, as "a.b: value" and "c[0]: value". */
static void print_run(FILE *out, const char *name, const json_t *value)
{
	const char *text = json_string_value(value), *key;
	json_t *child;
	size_t i;

	if (json_object_size(value)) {
		json_object_foreach((json_t *)value, key, child) {
			char *path = format("%s%s%s", name, *name ? "." : "", key);

			print_run(out, path, child);
			free(path);
		}
	} else if (json_array_size(value)) {
		json_array_foreach(value, i, child) {
			char *path = format("%s[%zu]", name, i);

			print_run(out, path, child);
			free(path);
		}
	} else if (*name) {
		/* One line each: a string with line breaks is shown as JSON writes it. */
		bool plain = text && *text;
		char *dump;

		for (const char *c = text; plain && *c; c++)
			plain = !iscntrl((unsigned char)*c);
		dump = plain ? format("%s", text) :
			       json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		if (!dump)
			err(1, NULL);
		fprintf(out, "    %s: %s\n", name, dump);
		free(dump);
	}
}

static void print_head(FILE *out, const struct report *report, bool md)
{
	const struct row *row = &report->rows[0];

	fprintf(out, "%sbase against queue\n\n", md ? "# " : "");
	print_run(out, "", report->run);
	if (!json_object_get(report->run, "mode"))
		fprintf(out, "    mode: %s\n", report->mode);
	fprintf(out, "    boots: %zu of base, %zu of queue\n\n", row->base.nr, row->queue.nr);
	if (!strcmp(report->mode, "icount"))
		fputs("icount: guest time counts instructions;"
		      " it says nothing of caches or contention.\n\n", out);
}

static void print_summary(FILE *out, const struct report *report, bool md)
{
	static const char * const summary_head[] = {
		"job", "figure", "unit", "base", "queue", "diff %",
	};
	static const char * const shown[] = {
		"get+put", "pin+unpin", "slow_pin+unpin", "longterm_pin+unpin",
	};
	struct table table = { .cols = 6, .left = 3 };
	const struct row *first = &report->rows[0];
	size_t beyond = 0, unknown = 0;

	for (size_t i = 0; i < report->nr; i++) {
		const struct row *row = &report->rows[i];
		struct scale scale = scale_of(row);

		beyond += beyond_noise(row);
		unknown += !strcmp(row->verdict, "unknown");
		if (strncmp(row->job, "gup/", 4))
			continue;
		for (size_t j = 0; j < sizeof(shown) / sizeof(*shown); j++) {
			if (strcmp(row->figure, shown[j]))
				continue;
			if (!table.nr)
				head(&table, summary_head);
			cell(&table, "%s", row->job);
			cell(&table, "%s", row->figure);
			cell(&table, "%s", scale.unit);
			value_cell(&table, &scale, row->base.median);
			value_cell(&table, &scale, row->queue.median);
			difference_cell(&table, row);
		}
	}
	if (table.nr)
		print_table(out, &table, md);

	fprintf(out, "%zu of %zu figures differ beyond the noise", beyond, report->nr);
	if (first->base.nr < 2 || first->queue.nr < 2)
		fputs(" (one boot: no noise figure)", out);
	else if (unknown)
		fprintf(out, ", %zu cannot be told", unknown);
	fputs(".\n\n", out);
	fputs("base and queue are medians over the boots.  noise is how far the boots of base\n"
	      "and those of queue lie apart, both added, or what the figure can resolve if that\n"
	      "is more.\n"
	      "A difference marked * is beyond the noise.\n\n", out);
}

static void print_jobs(FILE *out, const struct report *report, bool md)
{
	static const char * const job_head[] = {
		"figure", "unit", "base", "queue", "diff %", "noise ±%",
		"base min..max", "queue min..max",
	};
	struct table table = { .cols = 8, .left = 2 };

	for (size_t i = 0; i < report->nr; i++) {
		const struct row *row = &report->rows[i];
		struct scale scale = scale_of(row);

		if (!table.nr) {
			fprintf(out, "%s%s\n\n", md ? "## " : "", row->job);
			head(&table, job_head);
		}
		cell(&table, "%s", row->figure);
		cell(&table, "%s", scale.unit);
		value_cell(&table, &scale, row->base.median);
		value_cell(&table, &scale, row->queue.median);
		difference_cell(&table, row);
		noise_cell(&table, row);
		range_cell(&table, &scale, &row->base);
		range_cell(&table, &scale, &row->queue);
		if (i + 1 == report->nr || strcmp(row->job, row[1].job))
			print_table(out, &table, md);
	}
}

static void print_report(FILE *out, const struct report *report, bool md)
{
	print_head(out, report, md);
	print_summary(out, report, md);
	print_jobs(out, report, md);
}

void report_text(FILE *out, const struct report *report)
{
	print_report(out, report, false);
}

void report_markdown(FILE *out, const struct report *report)
{
	print_report(out, report, true);
}
