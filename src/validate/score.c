/*
 * score.c - how far predictions are off, family by family.
 *
 * Rows of one study repeat one another, so errors are averaged inside a family first and the
 * families then count alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/validate.h"

double score_log_error(const struct scored_row *row)
{
    if (!row->prediction->done || row->row->step_s <= 0.0 || row->prediction->step_s <= 0.0)
        return NAN;
    return log(row->prediction->step_s / row->row->step_s);
}

double score_memory_log_error(const struct scored_row *row)
{
    if (!row->prediction->done || row->row->memory_bytes <= 0.0 ||
        row->prediction->memory_bytes <= 0.0)
        return NAN;
    return log(row->prediction->memory_bytes / row->row->memory_bytes);
}

struct picked {
    const struct scored_row *const *rows; /* in file order */
    uint32_t count;
};

/* ---- One family at a time ---- */

static bool same_family(const struct scored_row *a, const struct scored_row *b)
{
    return strcmp(a->row->family, b->row->family) == 0;
}

static bool first_of_family(const struct picked *picked, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (same_family(picked->rows[i], picked->rows[index]))
            return false;
    return true;
}

/* Sum over the family of row `first` of f(row, first). */
struct family_mean {
    double sum;
    uint32_t count;
};

typedef double (*row_value)(const struct scored_row *row, const struct scored_row *first);

static double absolute(const struct scored_row *row, const struct scored_row *first)
{
    (void)first;
    return fabs(score_log_error(row));
}

static double signed_error(const struct scored_row *row, const struct scored_row *first)
{
    (void)first;
    return score_log_error(row);
}

static double memory_absolute(const struct scored_row *row, const struct scored_row *first)
{
    (void)first;
    return fabs(score_memory_log_error(row));
}

static double anchored(const struct scored_row *row, const struct scored_row *first)
{
    return row == first ? (double)NAN : fabs(score_log_error(row) - score_log_error(first));
}

static struct family_mean family_mean(const struct picked *picked, uint32_t first, row_value value)
{
    struct family_mean mean = {0};
    for (uint32_t i = first; i < picked->count; i++) {
        if (!same_family(picked->rows[i], picked->rows[first]))
            continue;
        const double one = value(picked->rows[i], picked->rows[first]);
        if (!isnan(one)) {
            mean.sum += one;
            mean.count++;
        }
    }
    return mean;
}

/* Mean over families of the mean inside; NAN when there is nothing to average. */
static double mean_of_families(const struct picked *picked, row_value value)
{
    double sum = 0.0;
    uint32_t families = 0;
    for (uint32_t i = 0; i < picked->count; i++) {
        if (!first_of_family(picked, i))
            continue;
        const struct family_mean mean = family_mean(picked, i, value);
        if (mean.count > 0) {
            sum += mean.sum / mean.count;
            families++;
        }
    }
    return families > 0 ? sum / families : (double)NAN;
}

/* ---- Ordering ---- */

#define KENDALL_ROWS_MIN 4

static int sign(double value)
{
    return (value > 0.0) - (value < 0.0);
}

struct pairs {
    double agreement;
    double measured_untied, predicted_untied;
};

static void compare(const struct scored_row *a, const struct scored_row *b, struct pairs *pairs)
{
    const int measured = sign(a->row->step_s - b->row->step_s);
    const int predicted = sign(a->prediction->step_s - b->prediction->step_s);
    pairs->agreement += measured * predicted;
    pairs->measured_untied += measured != 0;
    pairs->predicted_untied += predicted != 0;
}

/* Kendall's tau-b inside the family of row `first`; NAN below four rows. */
static double kendall(const struct picked *picked, uint32_t first)
{
    struct pairs pairs = {0};
    uint32_t rows = 0;
    for (uint32_t i = first; i < picked->count; i++) {
        if (!same_family(picked->rows[i], picked->rows[first]))
            continue;
        rows++;
        for (uint32_t j = i + 1; j < picked->count; j++)
            if (same_family(picked->rows[j], picked->rows[first]))
                compare(picked->rows[i], picked->rows[j], &pairs);
    }
    if (rows < KENDALL_ROWS_MIN || pairs.measured_untied <= 0.0)
        return NAN;
    if (pairs.predicted_untied <= 0.0)
        return 0.0;
    return pairs.agreement / sqrt(pairs.measured_untied * pairs.predicted_untied);
}

static double mean_kendall(const struct picked *picked)
{
    double sum = 0.0;
    uint32_t families = 0;
    for (uint32_t i = 0; i < picked->count; i++) {
        const double tau = first_of_family(picked, i) ? kendall(picked, i) : (double)NAN;
        if (!isnan(tau)) {
            sum += tau;
            families++;
        }
    }
    return families > 0 ? sum / families : (double)NAN;
}

/* ---- All together ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median and shares over rows. */
static void spread(const struct picked *picked, struct score *score)
{
    static const double limits[3] = {0.10, 0.20, 0.30};
    double *errors = calloc(picked->count + 1, sizeof *errors);
    ASSERT(errors != NULL);
    for (uint32_t i = 0; i < picked->count; i++) {
        const double error = score_log_error(picked->rows[i]);
        errors[i] = fabs(error);
        for (int k = 0; k < 3; k++)
            score->within[k] += fabs(exp(error) - 1.0) <= limits[k] ? 1.0 / picked->count : 0.0;
    }
    qsort(errors, picked->count, sizeof *errors, ascending);
    if (picked->count > 0)
        score->median_log = 0.5 * (errors[(picked->count - 1) / 2] + errors[picked->count / 2]);
    free(errors);
}

struct score score_rows(const struct scored_row *rows, uint32_t count, score_filter filter,
                        const void *user)
{
    struct score score = {0};
    const struct scored_row **timed = calloc(2 * (size_t)count + 1, sizeof *timed);
    ASSERT(timed != NULL);
    const struct scored_row **weighed = timed + count;
    struct picked times = {.rows = timed}, memories = {.rows = weighed};
    for (uint32_t i = 0; i < count; i++) {
        if (filter != NULL ? !filter(rows[i].row, user) : !measurement_eligible(rows[i].row))
            continue;
        score.eligible += rows[i].row->step_s > 0.0;
        if (!isnan(score_log_error(&rows[i])))
            timed[times.count++] = &rows[i];
        if (!isnan(score_memory_log_error(&rows[i])))
            weighed[memories.count++] = &rows[i];
    }
    score.n = times.count;
    score.mae_log = mean_of_families(&times, absolute);
    score.bias_log = mean_of_families(&times, signed_error);
    score.anchored_mae_log = mean_of_families(&times, anchored);
    score.kendall_tau = mean_kendall(&times);
    spread(&times, &score);
    score.memory_n = memories.count;
    score.memory_mae_log = mean_of_families(&memories, memory_absolute);
    free(timed);
    return score;
}

/* ---- Groups ---- */

static bool is_ascend(const struct measurement *row, const void *user)
{
    (void)user;
    return measurement_eligible(row) && row->ascend;
}

static bool is_nvidia(const struct measurement *row, const void *user)
{
    (void)user;
    return measurement_eligible(row) && !row->ascend;
}

static bool is_moe(const struct measurement *row, const void *user)
{
    (void)user;
    return measurement_eligible(row) && row->moe;
}

static bool is_dense(const struct measurement *row, const void *user)
{
    (void)user;
    return measurement_eligible(row) && !row->moe;
}

static bool is_reported(const struct measurement *row, const void *user)
{
    (void)user;
    return measurement_eligible(row) && row->reported;
}

static bool is_derived(const struct measurement *row, const void *user)
{
    (void)user;
    return measurement_eligible(row) && !row->reported;
}

static bool has_grade(const struct measurement *row, const void *user)
{
    return row->kind == MEASUREMENT_STEP && row->sixteen_bit && strcmp(row->grade, user) == 0;
}

static bool on_device(const struct measurement *row, const void *user)
{
    return measurement_eligible(row) && strcmp(row->device, user) == 0;
}

uint32_t score_groups(const struct scored_row *rows, uint32_t count, struct score_group *groups,
                      uint32_t maximum, struct arena *arena)
{
    const struct score_group fixed[] = {
        {"ascend", is_ascend, NULL}, {"nvidia", is_nvidia, NULL},     {"moe", is_moe, NULL},
        {"dense", is_dense, NULL},   {"reported", is_reported, NULL}, {"derived", is_derived, NULL},
        {"grade:A", has_grade, "A"}, {"grade:B", has_grade, "B"},     {"grade:C", has_grade, "C"},
    };
    uint32_t filled = 0;
    for (; filled < sizeof fixed / sizeof fixed[0] && filled < maximum; filled++)
        groups[filled] = fixed[filled];
    for (uint32_t i = 0; i < count && filled < maximum; i++) {
        const struct measurement *row = rows[i].row;
        bool known = !measurement_eligible(row);
        for (uint32_t j = 0; j < i && !known; j++)
            known =
                measurement_eligible(rows[j].row) && strcmp(rows[j].row->device, row->device) == 0;
        if (!known)
            groups[filled++] = (struct score_group){arena_printf(arena, "device:%s", row->device),
                                                    on_device, row->device};
    }
    return filled;
}
