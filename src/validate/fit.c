/*
 * fit.c - constants of a device type from whole runs, by Levenberg and Marquardt.
 *
 * The variables of the solver are unbounded: ln value = ln low + (ln high - ln low) s(u) with
 * the logistic s. One evaluation simulates all rows of the type; a Jacobian simulates them
 * once more per constant, all in one batch for the worker processes.
 */
#include <cminpack.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/calibrate.h"

#define ERROR_SCALE 0.04 /* an error of this size counts as one spread of a prior */
#define HUBER_BEND  0.05 /* errors count squared below, linearly above */
#define STEP_LOG    0.04 /* of the difference quotients, in logarithms */
#define TOLERANCE   1e-2
#define EVALUATIONS 12

/* ---- Predictions with trial constants ---- */

struct trial_values {
    double values[CONSTANTS_MAX];
};

static const struct scenario_override *
overrides_of(const struct fit *fit, const struct fit_type *type, const struct trial_values *trial)
{
    struct scenario_override *overrides =
        ARENA_ARRAY(fit->arena, CONSTANTS_MAX, struct scenario_override);
    for (uint32_t i = 0; i < type->constant_count; i++) {
        const struct fit_constant *constant = &type->constants[i];
        overrides[i] = (struct scenario_override){
            arena_printf(fit->arena, "cluster.device.%s", constant->key),
            arena_printf(fit->arena, "%.9g%s%s", trial->values[i],
                         constant->unit[0] != '\0' ? " " : "", constant->unit)};
    }
    return overrides;
}

/* ln(predicted / measured) of the rows for each trial: errors[trial][row]. */
static void evaluate(const struct fit *fit, const struct fit_type *type,
                     const struct trial_values *trials, uint32_t trial_count, double *errors)
{
    const uint32_t count = type->row_count * trial_count;
    const struct measurement **rows =
        ARENA_ARRAY(fit->arena, count + 1, const struct measurement *);
    struct validate_extra *extras = ARENA_ARRAY(fit->arena, count + 1, struct validate_extra);
    for (uint32_t t = 0; t < trial_count; t++) {
        const struct validate_extra extra = {overrides_of(fit, type, &trials[t]),
                                             type->constant_count};
        for (uint32_t i = 0; i < type->row_count; i++) {
            rows[t * type->row_count + i] = type->rows[i];
            extras[t * type->row_count + i] = extra;
        }
    }
    const struct validate_ask ask = {
        .rows = rows,
        .count = count,
        .tables = fit->tables,
        .config_dir = fit->config_dir,
        .extras = extras,
        .jobs = fit->jobs,
    };
    const struct prediction *predictions = validate_run(&ask, fit->arena);
    for (uint32_t i = 0; i < count; i++)
        errors[i] = score_log_error(&(struct scored_row){rows[i], &predictions[i]});
}

/* ---- Residuals ---- */

/* Square root of the pseudo-Huber loss, with the sign of the error. */
static double bent(double error)
{
    const double x = error / HUBER_BEND;
    const double loss = 2.0 * HUBER_BEND * HUBER_BEND * (sqrt(1.0 + x * x) - 1.0);
    return copysign(sqrt(loss), error);
}

static double bent_slope(double error)
{
    const double x = error / HUBER_BEND;
    const double root = fabs(bent(error));
    return root < 1e-12 ? 1.0 : fabs(error) / (sqrt(1.0 + x * x) * root);
}

/* Weight of a row's residual: families count alike. `taking` NULL takes all rows. */
static void row_weights(const struct fit_type *type, const double *errors, const bool *taking,
                        double *weights)
{
    for (uint32_t i = 0; i < type->row_count; i++) {
        uint32_t family = 0;
        for (uint32_t j = 0; j < type->row_count; j++)
            family +=
                !isnan(errors[j]) && strcmp(type->rows[i]->family, type->rows[j]->family) == 0;
        const bool in = !isnan(errors[i]) && (taking == NULL || taking[i]);
        weights[i] = in ? 1.0 / (ERROR_SCALE * sqrt((double)family)) : 0.0;
    }
}

static double span_of(const struct fit_constant *constant)
{
    return log(constant->high / constant->low);
}

static double value_of(const struct fit_constant *constant, double u)
{
    return constant->low * exp(span_of(constant) / (1.0 + exp(-u)));
}

/* d ln value / d u */
static double value_slope(const struct fit_constant *constant, double u)
{
    const double s = 1.0 / (1.0 + exp(-u));
    return span_of(constant) * s * (1.0 - s);
}

static double variable_of(const struct fit_constant *constant, double value)
{
    const double share = log(value / constant->low) / span_of(constant);
    const double inside = fmin(0.98, fmax(0.02, share));
    return log(inside / (1.0 - inside));
}

/* What the solver asks about: real simulations, or the linear model around a fit. */
struct problem {
    struct fit *fit;
    struct fit_type *type;
    const bool *taking;
    bool linear;
    double *errors;   /* [row] at the last evaluation */
    double *jacobian; /* [row][constant] of ln values */
    double *weights;
    uint32_t evaluations;
};

static void linear_errors(const struct problem *problem, const struct trial_values *trial)
{
    const struct fit_type *type = problem->type;
    for (uint32_t i = 0; i < type->row_count; i++) {
        problem->errors[i] = type->errors[i];
        for (uint32_t k = 0; k < type->constant_count; k++)
            problem->errors[i] += type->jacobian[i * type->constant_count + k] *
                                  log(trial->values[k] / type->constants[k].value);
    }
}

static void real_jacobian(const struct problem *problem, const struct trial_values *at)
{
    const struct fit_type *type = problem->type;
    struct trial_values trials[CONSTANTS_MAX];
    for (uint32_t k = 0; k < type->constant_count; k++) {
        trials[k] = *at;
        trials[k].values[k] *= exp(STEP_LOG);
    }
    double *moved = ARENA_ARRAY(problem->fit->arena,
                                (size_t)type->row_count * type->constant_count + 1, double);
    evaluate(problem->fit, type, trials, type->constant_count, moved);
    for (uint32_t i = 0; i < type->row_count; i++)
        for (uint32_t k = 0; k < type->constant_count; k++)
            problem->jacobian[i * type->constant_count + k] =
                (moved[k * type->row_count + i] - problem->errors[i]) / STEP_LOG;
}

static void fill_residuals(const struct problem *problem, const struct trial_values *trial,
                           double *residuals)
{
    const struct fit_type *type = problem->type;
    for (uint32_t i = 0; i < type->row_count; i++)
        residuals[i] =
            problem->weights[i] > 0.0 ? problem->weights[i] * bent(problem->errors[i]) : 0.0;
    for (uint32_t k = 0; k < type->constant_count; k++)
        residuals[type->row_count + k] =
            log(trial->values[k] / type->constants[k].prior) / type->constants[k].spread;
}

static void fill_slopes(const struct problem *problem, const double *u, double *slopes, int rows)
{
    const struct fit_type *type = problem->type;
    for (uint32_t k = 0; k < type->constant_count; k++) {
        const double outer = value_slope(&type->constants[k], u[k]);
        double *column = &slopes[(size_t)rows * k];
        for (uint32_t i = 0; i < type->row_count; i++)
            column[i] = problem->weights[i] > 0.0
                            ? problem->weights[i] * bent_slope(problem->errors[i]) *
                                  problem->jacobian[i * type->constant_count + k] * outer
                            : 0.0;
        for (uint32_t j = 0; j < type->constant_count; j++)
            column[type->row_count + j] = j == k ? outer / type->constants[k].spread : 0.0;
    }
}

static int least_squares(void *raw, int rows, int variables, const double *u, double *residuals,
                         double *slopes, int slope_rows, int flag)
{
    struct problem *problem = raw;
    const struct fit_type *type = problem->type;
    struct trial_values trial;
    for (int k = 0; k < variables; k++)
        trial.values[k] = value_of(&type->constants[k], u[k]);
    if (flag == 2) {
        if (!problem->linear)
            real_jacobian(problem, &trial);
        fill_slopes(problem, u, slopes, slope_rows);
        return 0;
    }
    if (problem->linear)
        linear_errors(problem, &trial);
    else
        evaluate(problem->fit, type, &trial, 1, problem->errors);
    row_weights(type, problem->errors, problem->taking, problem->weights);
    fill_residuals(problem, &trial, residuals);
    problem->evaluations++;
    double loss = 0.0;
    for (int i = 0; i < rows; i++)
        loss += residuals[i] * residuals[i];
    if (!problem->linear && problem->fit->progress != NULL)
        problem->fit->progress(problem->fit->user, type->name, problem->evaluations, loss);
    return 0;
}

/* Fills `solution` with the best values; starts at the constants' own. */
static void solve(struct problem *problem, struct trial_values *solution)
{
    struct fit_type *type = problem->type;
    struct arena *arena = problem->fit->arena;
    const int n = (int)type->constant_count;
    const int m = (int)(type->row_count + type->constant_count);
    double u[CONSTANTS_MAX], scale[CONSTANTS_MAX], qtf[CONSTANTS_MAX];
    double work[3][CONSTANTS_MAX];
    int pivots[CONSTANTS_MAX], functions = 0, jacobians = 0;
    double *residuals = ARENA_ARRAY(arena, (size_t)m, double);
    double *slopes = ARENA_ARRAY(arena, (size_t)m * (size_t)n + 1, double);
    double *long_work = ARENA_ARRAY(arena, (size_t)m, double);
    for (int k = 0; k < n; k++)
        u[k] = variable_of(&type->constants[k], type->constants[k].value);
    __cminpack_func__(lmder)(least_squares, problem, m, n, u, residuals, slopes, m, TOLERANCE,
                             TOLERANCE, 0.0, EVALUATIONS, scale, 1, 1.0, 0, &functions, &jacobians,
                             pivots, qtf, work[0], work[1], work[2], long_work);
    for (int k = 0; k < n; k++)
        solution->values[k] = value_of(&type->constants[k], u[k]);
}

void fit_run(struct fit *fit, struct fit_type *type)
{
    const size_t cells = (size_t)type->row_count * type->constant_count + 1;
    type->errors = ARENA_ARRAY(fit->arena, type->row_count + 1, double);
    type->jacobian = ARENA_ARRAY(fit->arena, cells, double);
    struct problem problem = {
        .fit = fit,
        .type = type,
        .errors = type->errors,
        .jacobian = type->jacobian,
        .weights = ARENA_ARRAY(fit->arena, type->row_count + 1, double),
    };
    struct trial_values solution;
    for (uint32_t k = 0; k < type->constant_count; k++)
        type->constants[k].value = type->constants[k].prior;
    if (type->row_count == 0)
        return;
    solve(&problem, &solution);
    for (uint32_t k = 0; k < type->constant_count; k++)
        type->constants[k].value = solution.values[k];
    evaluate(fit, type, &solution, 1, type->errors);
    real_jacobian(&problem, &solution);
}

/* ---- Random halves ---- */

/* One number per family and draw, the same on every machine. */
static bool taken(const struct measurement *row, uint32_t draw)
{
    uint64_t hash = 1469598103934665603u ^ draw;
    for (const char *c = row->family; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    hash ^= hash >> 31;
    hash *= 0x9E3779B97F4A7C15u;
    return (hash >> 63) != 0;
}

struct family_sums {
    double sum;
    uint32_t families;
};

/* Mean |error| of the family of row `first`, counted at its first row only. */
static void add_family(const struct fit_type *type, const double *errors, uint32_t first,
                       struct family_sums *sums)
{
    double sum = 0.0;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < type->row_count; i++) {
        if (strcmp(type->rows[i]->family, type->rows[first]->family) != 0 || isnan(errors[i]))
            continue;
        if (i < first)
            return;
        sum += fabs(errors[i]);
        rows++;
    }
    if (rows > 0) {
        sums->sum += sum / rows;
        sums->families++;
    }
}

enum { SUM_FIT, SUM_OUT, SUM_OUT_DENSE, SUM_OUT_MOE, SUM_COUNT };

static void half_of_type(struct fit *fit, struct fit_type *type, uint32_t draw,
                         struct family_sums sums[SUM_COUNT])
{
    bool *taking = ARENA_ARRAY(fit->arena, type->row_count + 1, bool);
    double *errors = ARENA_ARRAY(fit->arena, type->row_count + 1, double);
    for (uint32_t i = 0; i < type->row_count; i++)
        taking[i] = taken(type->rows[i], draw);
    struct problem problem = {
        .fit = fit,
        .type = type,
        .taking = taking,
        .linear = true,
        .errors = errors,
        .jacobian = type->jacobian,
        .weights = ARENA_ARRAY(fit->arena, type->row_count + 1, double),
    };
    struct trial_values solution;
    solve(&problem, &solution);
    evaluate(fit, type, &solution, 1, errors);
    for (uint32_t i = 0; i < type->row_count; i++) {
        add_family(type, errors, i, &sums[taking[i] ? SUM_FIT : SUM_OUT]);
        if (!taking[i])
            add_family(type, errors, i, &sums[type->rows[i]->moe ? SUM_OUT_MOE : SUM_OUT_DENSE]);
    }
}

static double mean_of(const struct family_sums *sums)
{
    return sums->families > 0 ? sums->sum / sums->families : (double)NAN;
}

void fit_halves(struct fit *fit, uint32_t draws, struct fit_half *halves)
{
    for (uint32_t draw = 0; draw < draws; draw++) {
        struct family_sums sums[SUM_COUNT] = {{0}};
        for (uint32_t t = 0; t < fit->type_count; t++)
            if (fit->types[t].row_count > 0)
                half_of_type(fit, &fit->types[t], draw, sums);
        halves[draw] = (struct fit_half){
            .fit_mae_log = mean_of(&sums[SUM_FIT]),
            .left_out_mae_log = mean_of(&sums[SUM_OUT]),
            .left_out_dense = mean_of(&sums[SUM_OUT_DENSE]),
            .left_out_moe = mean_of(&sums[SUM_OUT_MOE]),
            .fit_families = sums[SUM_FIT].families,
            .left_out_families = sums[SUM_OUT].families,
        };
    }
}
