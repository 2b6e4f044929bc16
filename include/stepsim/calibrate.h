/*
 * calibrate.h - fits a few constants of a device type to published runs.
 *
 * configs/calibration.yaml names the types: which device files share the constants, which rows of
 * measurements belong to them, and for each constant the prior, its spread (a factor is as likely
 * as its inverse: logarithms), and bounds. Kernel, link and collective constants are measured on
 * their own and are no business of this.
 *
 * The fit minimises, over the logarithms of the constants,
 *     sum over rows of huber(ln predicted - ln measured) / rows of the family
 *     + sum over constants of ((ln value - ln prior) / spread)^2
 * by Levenberg and Marquardt (cminpack), with the Jacobian from real simulations. All rows of a
 * type share the constants; there is no factor of a row, a model or a family.
 *
 * Cross-validation: families are split at random into halves. The constants of one half come
 * from the Jacobian at the full fit; both halves are then simulated with them.
 */
#ifndef STEPSIM_CALIBRATE_H
#define STEPSIM_CALIBRATE_H

#include "stepsim/validate.h"

#define CONSTANTS_MAX 12
#define DEVICES_MAX   12

struct fit_constant {
    const char *key;  /* of a device file: "vector_traffic_ratio" */
    const char *unit; /* in which values are written: "", "us", "s" */
    double prior, spread, low, high;
    double value; /* fitted */
};

struct fit_type {
    const char *name;
    const char *devices[DEVICES_MAX]; /* names of device files */
    uint32_t device_count;
    struct fit_constant constants[CONSTANTS_MAX];
    uint32_t constant_count;
    /* the rows */
    const struct measurement **rows;
    uint32_t row_count;
    double *jacobian; /* [row][constant] d ln predicted / d ln constant at the fit */
    double *errors;   /* [row] ln predicted / measured at the fit, NAN: no prediction */
};

struct fit {
    struct fit_type *types;
    uint32_t type_count;
    const struct yaml_tree *tables;
    const char *config_dir;
    uint32_t jobs;
    struct arena *arena;
    void (*progress)(void *user, const char *type, uint32_t evaluation, double loss);
    void *user;
};

/* Reads the types and deals the rows to them; rows that `exclude` names, and rows that are not
 * eligible, take no part. NULL with errors. */
struct fit *fit_read(const char *config_dir, const struct measurement_set *const *sets,
                     uint32_t set_count, struct arena *arena, struct error_list *errors);

/* Fits one type; values, jacobian and errors are filled. */
void fit_run(struct fit *fit, struct fit_type *type);

/* The half of the families that a draw takes part in, and the answer. */
struct fit_half {
    double fit_mae_log, left_out_mae_log; /* mean over families */
    double left_out_dense, left_out_moe;  /* NAN without any */
    uint32_t fit_families, left_out_families;
};

/* Cross-validates over all types together: one draw splits the families of each type. */
void fit_halves(struct fit *fit, uint32_t draws, struct fit_half *halves);

/* Writes the values of a type into its device files, with grade fitted and a source. False with
 * errors. */
bool fit_write(const struct fit *fit, const struct fit_type *type, struct error_list *errors);

#endif
