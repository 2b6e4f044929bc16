/*
 * simulate_store.c - one result into a database.
 *
 * The same question to the same program has the same answer, so it is a sweep of one point,
 * known by scenario, program, steps and ranks.
 */
#include "simulate_store.h"

#include <time.h>

#include "stepsim/store.h"
#include "stepsim/text.h"
#include "stepsim_version.h"

bool simulate_store(struct cli *cli, const char *db, const struct run *result)
{
    struct report *report = result->report;
    const struct scenario *scenario = result->scenario;
    struct store *store = store_open(db, STORE_WRITE, cli->arena, &cli->errors);
    if (store == NULL) {
        return false;
    }
    const struct store_sweep single = {
        .kind = "single",
        .name = scenario->title != NULL ? scenario->title : scenario->path,
        .hash = arena_printf(cli->arena, "%s-%s-%u-%s", report->scenario_hash, STEPSIM_COMMIT,
                             report->step_count, report->ranks_all ? "all" : "folded"),
        .definition = "{}",
        .points_total = 1,
    };
    const struct store_invocation invocation = {.command_line = command_line_text(cli), .jobs = 1};
    struct store_point point = {
        .status = report->fits ? RUN_OK : RUN_DOES_NOT_FIT,
        .scenario = scenario,
        .report = report,
        .layout_no = -1,
        .wall_s = report->wall_s,
        .cpu_s = (double)clock() / (double)CLOCKS_PER_SEC,
        .memory_peak_bytes = arena_used_bytes(cli->arena),
    };
    if (!report->fits) {
        point.code = error_code_name(ERROR_does_not_fit);
        point.message = arena_printf(cli->arena, "stage %u needs %s and may use %s",
                                     report->peak_stage, text_gib(cli->arena, report->peak_bytes),
                                     text_gib(cli->arena, report->limit_bytes));
    }
    struct text packed = {0};
    store_pack(&packed, &point, cli->arena);
    bool good = store_begin_sweep(store, &single, &invocation, &cli->errors) &&
                store_write(store, &packed, &cli->errors) &&
                store_end_sweep(store, true, &cli->errors);
    good = store_close(store, &cli->errors) && good;
    text_free(&packed);
    return good;
}
