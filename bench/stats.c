// SPDX-License-Identifier: GPL-2.0
/* What several boots of two kernels say about one figure. */
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

/* Orders doubles, and structures that begin with one. */
int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted(const double *values, size_t nr)
{
	double *copy = malloc(nr * sizeof(*copy));

	if (!copy)
		err(1, NULL);
	memcpy(copy, values, nr * sizeof(*copy));
	qsort(copy, nr, sizeof(*copy), by_value);
	return copy;
}

double median(const double *values, size_t nr)
{
	double *copy = sorted(values, nr);
	double mid = copy[nr / 2];

	if (nr % 2 == 0)
		mid = (copy[nr / 2 - 1] + mid) / 2;
	free(copy);
	return mid;
}

void sum_up(struct side *side)
{
	double *copy = sorted(side->boots, side->nr);

	side->min = copy[0];
	side->max = copy[side->nr - 1];
	side->median = median(copy, side->nr);
	free(copy);
}

/* Nothing is relative to 0, except that nothing but zeros does not vary. */
static double relative(double value, const struct side *side)
{
	double ratio = side->max == 0 ? 0 : value / side->median;

	return isfinite(ratio) ? ratio : NAN;
}

/*
 * How far apart two kernels may be that do not differ: each median may be anywhere in the
 * range of its boots, and a figure tells no less than it can resolve.
 */
static double noise(const struct side *base, const struct side *queue)
{
	double ranges = relative(base->max - base->min, base) +
			relative(queue->max - queue->min, queue);
	double steps = fmax(relative(base->step, base), relative(queue->step, queue));

	if (base->nr < 2 || queue->nr < 2 || isnan(ranges))
		return NAN;
	return fmax(ranges, steps);
}

void judge(struct row *row)
{
	row->ratio = row->queue.median / row->base.median;
	if (!isfinite(row->ratio))
		row->ratio = NAN;
	row->noise = noise(&row->base, &row->queue);

	if (isnan(row->noise))
		row->verdict = "unknown";
	else if (row->base.max == 0 && row->queue.max == 0)
		row->verdict = "same";
	else if (isnan(row->ratio))
		row->verdict = "unknown";
	else if (fabs(row->ratio - 1) <= row->noise)
		row->verdict = "same";
	else
		row->verdict = row->ratio > 1 ? "higher" : "lower";
}
