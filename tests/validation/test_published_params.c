/*
 * test_published_params.c - every model in configs/models counts its published parameters.
 *
 * A model file says what its published figures count (with the input embedding or without, with
 * MTP or without) and where they were printed. Most are rounded to two or three digits, and a
 * few differ from the dimensions of their own release by half a per cent (the files say so), so
 * a total must agree within 1 % and an active count, which sources round to two digits and count
 * in their own ways, within 2.5 %. The models that must be there are named below.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "assert_refused.h"
#include "stepsim/model.h"

#define FOLDER STEPSIM_SOURCE_DIR "/configs/models"

static const struct model *load_model(const char *name, struct arena *arena)
{
    struct error_list *errors = ARENA_NEW(arena, struct error_list);
    error_list_init(errors, arena);
    const struct scenario_source source = {
        .text = arena_printf(arena,
                             "model: %s\ncluster: atlas_800t_a2\ndevices: 8\n"
                             "training: {seq_len: 2048, micro_batch_size: 1, "
                             "global_batch_size: 8}\n",
                             name),
        .text_name = name,
        .config_dir = STEPSIM_SOURCE_DIR "/configs",
    };
    const struct scenario *scenario = scenario_load(&source, arena, errors);
    assert_accepted(errors);
    const struct model *model = model_build(scenario, arena, errors);
    assert_accepted(errors);
    return model;
}

static void check_count(const char *name, const char *what, double counted, double published,
                        double tolerance)
{
    if (published <= 0.0)
        return;
    print_message("%-24s %-6s %10.4g  published %10.4g  %+.2f %%\n", name, what, counted, published,
                  100.0 * (counted / published - 1.0));
    assert_close(counted, published, tolerance);
}

/* True if the file has a figure to compare with. */
static bool check_model(const char *name)
{
    struct arena *arena = arena_create("published");
    const struct model *model = load_model(name, arena);
    const struct published_spec *published = &model->spec->published;
    const double embedding = published->with_input_embedding ? model->params_embedding : 0.0;
    const double mtp = published->with_mtp ? model->params_mtp : 0.0;
    const bool any = published->params_total > 0.0 || published->params_active > 0.0;
    check_count(name, "total", model->params_total + embedding + mtp, published->params_total,
                0.01);
    /* Sources differ in whether an active count has the embedding; the nearer reading counts. */
    const double without = model->params_active;
    const double with = without + model->params_embedding;
    const double target = published->params_active;
    check_count(name, "active", fabs(with - target) < fabs(without - target) ? with : without,
                target, 0.025);
    arena_destroy(arena);
    return any;
}

static int is_yaml(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static void every_model_counts_what_was_published(void **state)
{
    (void)state;
    struct dirent **entries = NULL;
    const int count = scandir(FOLDER, &entries, is_yaml, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strlen(entries[i]->d_name) - 5,
                 entries[i]->d_name);
        if (!check_model(name))
            fail_msg("%s has no published count", name);
        free(entries[i]);
    }
    free(entries);
}

static void the_promised_models_are_there(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pangu_ultra_moe_718b",
        "pangu_ultra_135b",
        "pangu_pro_moe_72b",
        "deepseek_v3",
        "deepseek_v2",
        "deepseek_v2_lite",
        "mixtral_8x7b",
        "mixtral_8x22b",
        "qwen3_30b_a3b",
        "qwen3_235b_a22b",
        "qwen2_57b_a14b",
        "grok_1",
        "llama2_7b",
        "llama2_13b",
        "llama2_70b",
        "llama3_8b",
        "llama3_70b",
        "llama3_1_405b",
        "gpt3_175b",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_true(check_model(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_counts_what_was_published),
        cmocka_unit_test(the_promised_models_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
