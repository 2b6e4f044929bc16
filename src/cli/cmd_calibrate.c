/* cmd_calibrate.c - fits the end-to-end constants of device types to published runs. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"
#include "stepsim/calibrate.h"

struct calibrate_values {
    const char *type;
    struct option_count jobs, halves;
    bool write;
};

#define AT(field) offsetof(struct calibrate_values, field)

static const struct option_row option_rows[] = {
    {.name = "type",
     .kind = OPTION_TEXT,
     .argument = "NAME",
     .help = "fit this type of configs/calibration.yaml only",
     .offset = AT(type),
     .group = "Fit"},
    {.name = "halves",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "cross-validate with N random halves of the families",
     .offset = AT(halves),
     .minimum = 1,
     .maximum = 1000,
     .group = "Fit"},
    OPTION_JOBS(AT(jobs), "Fit"),
    {.name = "write",
     .kind = OPTION_FLAG,
     .help = "write the values into the device files, with grade fitted",
     .offset = AT(write),
     .group = "Output"},
    {.name = NULL},
};

static void progress(void *user, const char *type, uint32_t evaluation, double loss)
{
    (void)user;
    fprintf(stderr, "%s: evaluation %u, loss %.3f\n", type, evaluation, loss);
}

static void print_type(struct cli *cli, const struct fit_type *type)
{
    struct table *table = table_create(cli);
    table_column(table, "constant", TABLE_LEFT);
    table_column(table, "prior", TABLE_RIGHT);
    table_column(table, "fitted", TABLE_RIGHT);
    table_column(table, "unit", TABLE_LEFT);
    for (uint32_t i = 0; i < type->constant_count; i++) {
        table_row(table);
        table_cell(table, "%s", type->constants[i].key);
        table_cell(table, "%.4g", type->constants[i].prior);
        table_cell(table, "%.4g", type->constants[i].value);
        table_cell(table, "%s", type->constants[i].unit);
    }
    printf("%s, %u rows\n", type->name, type->row_count);
    table_print(table, 2);
    table = table_create(cli);
    table_column(table, "row", TABLE_LEFT);
    table_column(table, "ln error", TABLE_RIGHT);
    for (uint32_t i = 0; i < type->constant_count; i++)
        table_column(table, type->constants[i].key, TABLE_RIGHT);
    for (uint32_t i = 0; i < type->row_count; i++) {
        if (isnan(type->errors[i]))
            continue;
        table_row(table);
        table_cell(table, "%s", type->rows[i]->id);
        table_cell(table, "%+.3f", type->errors[i]);
        for (uint32_t k = 0; k < type->constant_count; k++)
            table_cell(table, "%.2f", type->jacobian[i * type->constant_count + k]);
    }
    table_print(table, 2);
    printf("\n");
}

static void print_halves(struct cli *cli, struct fit *fit, uint32_t draws)
{
    struct fit_half *halves = ARENA_ARRAY(cli->arena, draws + 1, struct fit_half);
    fit_halves(fit, draws, halves);
    struct fit_half mean = {0};
    printf("Random halves of the families, mean |ln error|\n");
    for (uint32_t i = 0; i < draws; i++) {
        printf("  %2u: fit %.3f (%u families), left out %.3f (%u), dense %.3f, MoE %.3f\n", i + 1,
               halves[i].fit_mae_log, halves[i].fit_families, halves[i].left_out_mae_log,
               halves[i].left_out_families, halves[i].left_out_dense, halves[i].left_out_moe);
        mean.fit_mae_log += halves[i].fit_mae_log / draws;
        mean.left_out_mae_log += halves[i].left_out_mae_log / draws;
        mean.left_out_dense += halves[i].left_out_dense / draws;
        mean.left_out_moe += halves[i].left_out_moe / draws;
    }
    printf("  mean: fit %.3f, left out %.3f, dense %.3f, MoE %.3f\n", mean.fit_mae_log,
           mean.left_out_mae_log, mean.left_out_dense, mean.left_out_moe);
}

static struct fit *read_fit(struct cli *cli, const struct arguments *arguments)
{
    const struct measurement_set **sets =
        ARENA_ARRAY(cli->arena, arguments->count, const struct measurement_set *);
    for (uint32_t i = 0; i < arguments->count; i++) {
        sets[i] = measurements_read(arguments->items[i], cli->arena, &cli->errors);
        if (sets[i] == NULL)
            return NULL;
    }
    return fit_read(cli->config_dir, sets, arguments->count, cli->arena, &cli->errors);
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct calibrate_values *values = raw;
    struct fit *fit = read_fit(cli, arguments);
    if (fit == NULL)
        return report_errors(cli);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    fit->jobs = processors > 0 ? (uint32_t)processors : 1;
    if (values->jobs.given)
        fit->jobs = (uint32_t)values->jobs.value;
    fit->progress = progress;
    for (uint32_t i = 0; i < fit->type_count; i++) {
        struct fit_type *type = &fit->types[i];
        if (values->type != NULL && strcmp(values->type, type->name) != 0) {
            type->row_count = 0;
            continue;
        }
        fit_run(fit, type);
        print_type(cli, type);
        if (values->write)
            fit_write(fit, type, &cli->errors);
    }
    if (values->halves.given)
        print_halves(cli, fit, (uint32_t)values->halves.value);
    return cli->errors.count > 0 ? report_errors(cli) : EXIT_DONE;
}

const struct command command_calibrate = {
    .name = "calibrate",
    .group = "Trust",
    .summary = "fits the constants of device types to published runs",
    .usage = "FILE.csv...",
    .about =
        "Fits four to six constants per device type to whole runs, by the priors and bounds of\n"
        "configs/calibration.yaml, and prints the residuals. Kernel, link and collective "
        "constants\n"
        "stay as they were measured. No factor belongs to a row or a model.",
    .examples = "stepsim calibrate tests/data/measurements.csv\n"
                "stepsim calibrate tests/data/measurements.csv --type hopper --halves 12\n"
                "stepsim calibrate tests/data/measurements.csv --write",
    .options = option_rows,
    .values_size = sizeof(struct calibrate_values),
    .arguments_min = 1,
    .arguments_max = 16,
    .run = run,
};
