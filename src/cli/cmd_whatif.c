/* cmd_whatif.c - how a prediction moves with what it runs on. */
#include "cli_internal.h"
#include "stepsim/search.h"
#include "stepsim/text.h"

struct whatif_values {
    struct option_list set;
    struct option_count percent;
    bool json;
};

#define PERCENT_DEFAULT 10.0

#define AT(field) offsetof(struct whatif_values, field)

static const struct option_row option_rows[] = {
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .help = "change a key of the scenario, its model or its cluster; repeatable",
     .offset = AT(set),
     .group = "Scenario"},
    {.name = "percent",
     .kind = OPTION_COUNT,
     .argument = "P",
     .help = "by how much each resource is improved for its elasticity; 10 if left out",
     .offset = AT(percent),
     .minimum = 1,
     .maximum = 100,
     .group = "Scenario"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of the table",
     .offset = AT(json),
     .group = "Output"},
    {.name = NULL},
};

static void print_answer(struct cli *cli, const struct whatif_answer *answer)
{
    printf("%s%s%s on %u devices of %s: %s per step, MFU %.2f %%\n\n", paint(cli, PAINT_BOLD),
           answer->scenario->model.name, paint(cli, PAINT_NONE), answer->scenario->devices,
           answer->scenario->cluster.name, text_duration(cli->arena, answer->base.step_s),
           answer->base.mfu * 100.0);
    struct table *table = table_create(cli);
    table_column(table, "CHANGE", TABLE_LEFT);
    table_column(table, "WHAT", TABLE_LEFT);
    table_column(table, "STEP", TABLE_RIGHT);
    table_column(table, "BY", TABLE_RIGHT);
    table_column(table, "% PER %", TABLE_RIGHT);
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct whatif_row *row = &answer->rows[i];
        table_row(table);
        table_cell(table, "%s", row->name);
        table_cell(table, "%s", row->title);
        if (!row->done) {
            table_cell(table, "refused");
            table_cell(table, "%s", "");
            table_cell(table, "%s", "");
            continue;
        }
        table_cell(table, "%s%s", text_duration(cli->arena, row->step_s), row->fits ? "" : " !");
        table_cell(table, "%+.2f %%", row->change * 100.0);
        if (row->upgrade) {
            table_cell(table, "%s", "");
        } else {
            table_cell(table, "%+.3f", row->elasticity);
        }
    }
    table_print(table, 2);
    for (uint32_t i = 0; i < answer->count; i++) {
        if (!answer->rows[i].done) {
            const char *text =
                arena_printf(cli->arena, "%s: %s", answer->rows[i].name, answer->rows[i].reason);
            print_wrapped(stdout, (struct wrap){cli->width, 0, 0}, text);
        }
    }
    printf(
        "\n%% PER %%: percent of step time per percent of the resource, from %g %% of it. A \"!\" "
        "does not fit in memory.\n",
        answer->percent);
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct whatif_values *values = raw;
    struct scenario_source source;
    const struct scenario_ask scenario_ask = {.path = arguments->items[0], .set = values->set};
    if (!scenario_source_of(cli, &scenario_ask, &source)) {
        return report_errors(cli);
    }
    const struct whatif_ask ask = {
        .source = &source,
        .percent = values->percent.given ? (double)values->percent.value : PERCENT_DEFAULT,
    };
    const struct whatif_answer *answer = whatif_run(&ask, cli->arena, &cli->errors);
    if (answer == NULL) {
        return report_errors(cli);
    }
    if (values->json) {
        return print_json(whatif_json(answer));
    }
    print_answer(cli, answer);
    return EXIT_DONE;
}

const struct command command_whatif = {
    .name = "whatif",
    .group = "Predict",
    .summary = "how the prediction moves when a link, the memory or the device changes",
    .usage = "SIM.yaml",
    .about =
        "Improves one resource at a time by a few percent and prints the elasticity: percent of\n"
        "step time per percent of the resource. Below them stand named upgrades, such as the\n"
        "next device or twice the network, which are entries of configs/whatif.yaml.",
    .examples = "stepsim whatif sims/pangu_ultra_moe_6k/sim.yaml\n"
                "stepsim whatif sim.yaml --set parallel.tp=4 --json",
    .options = option_rows,
    .values_size = sizeof(struct whatif_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
