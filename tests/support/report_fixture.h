/*
 * report_fixture.h - everything that a report is made from, with numbers worked by hand.
 *
 * Two layers, one on each of two stages. Per token and layer: projections 4 * 64 * 64 and
 * feed-forward 2 * 64 * 256 multiply-adds, 98,304 FLOP; scores and values over 128 keys
 * 4 * 128 * 64 = 32,768 FLOP. Head 2 * 64 * 100 = 12,800 FLOP. Forward
 * 2 * (98,304 + 32,768) + 12,800 = 274,944 FLOP, training three times that: 824,832.
 * A step has 8 sequences of 128 = 1,024 tokens; the peak of the device is 1 TFLOP/s.
 */
#ifndef TEST_REPORT_FIXTURE_H
#define TEST_REPORT_FIXTURE_H

#include "hand_timeline.h"
#include "stepsim/report.h"

#define FIXTURE_FLOP_PER_TOKEN 824832.0
#define FIXTURE_TOKENS         1024.0

static const char fixture_text[] =
    "model: {layers: 2, hidden_size: 64, vocab_size: 100,\n"
    "        attention: {kind: mha, heads: 4, head_dim: 16},\n"
    "        ffn: {kind: plain, intermediate_size: 256}}\n"
    "cluster:\n"
    "  base: atlas_800t_a2\n"
    "  device: {base: ascend_910b3, peak: {value: 1 TFLOP/s, source: test, grade: assumed},\n"
    "           hbm_usable: {value: 60 GB, source: test, grade: assumed}}\n"
    "devices: 2\n"
    "parallel: {pp: 2, zero: 0}\n"
    "training: {seq_len: 128, micro_batch_size: 1, global_batch_size: 8, tokens: 1T}\n"
    "schedule: {kind: 1f1b}\n";

struct report_fixture {
    struct arena *arena;
    struct error_list errors;
    struct scenario *scenario;
    struct layout layout;
    struct layout_chunk chunks[2];
    struct plan plan;
    double sent_bytes[2 * CAUSE_COUNT], hardware_flop[2], forward_flop[2], recompute_flop[2];
    double logits_bytes[2];
    struct stage_memory memory[2];
    struct hand_timeline hand;
    struct step_outcome steps[2];
    struct report_parts parts;
};

/* A step of `end` picoseconds without ops; tests add what they look at. */
static inline void fixture_init(struct report_fixture *fixture, sim_time end)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->arena = arena_create("test");
    error_list_init(&fixture->errors, fixture->arena);
    const struct scenario_source source = {.text = fixture_text, .text_name = "fixture"};
    fixture->scenario = scenario_load(&source, fixture->arena, &fixture->errors);
    if (fixture->scenario == NULL) {
        print_error("%s", error_list_text(&fixture->errors, fixture->arena));
    }
    assert_non_null(fixture->scenario);
    fixture->chunks[0] = (struct layout_chunk){.layer_count = 1, .embedding = true};
    fixture->chunks[1] = (struct layout_chunk){.first_layer = 1, .layer_count = 1, .head = true};
    fixture->layout = (struct layout){.tp = 1,
                                      .pp = 2,
                                      .vpp = 1,
                                      .cp = 1,
                                      .dp = 1,
                                      .ep = 1,
                                      .etp = 1,
                                      .edp = 1,
                                      .world = 2,
                                      .microbatches = 8,
                                      .micro_batch_size = 1,
                                      .seq_len = 128,
                                      .chunks = fixture->chunks,
                                      .split_text = "1,1",
                                      .chunk_text = "Et|tL"};
    hand_init(&fixture->hand, end);
    fixture->forward_flop[0] = fixture->forward_flop[1] = 1.0;
    fixture->plan = (struct plan){.programs = &fixture->hand.programs,
                                  .sent_bytes = fixture->sent_bytes,
                                  .hardware_flop = fixture->hardware_flop,
                                  .forward_flop = fixture->forward_flop,
                                  .recompute_flop = fixture->recompute_flop,
                                  .stage_memory = fixture->memory,
                                  .logits_bytes = fixture->logits_bytes};
    fixture->steps[0] = fixture->steps[1] = (struct step_outcome){.end = end};
    fixture->parts = (struct report_parts){
        .scenario = fixture->scenario,
        .model = model_build(fixture->scenario, fixture->arena, &fixture->errors),
        .cluster = cluster_build(fixture->scenario, fixture->arena, &fixture->errors),
        .layout = &fixture->layout,
        .plan = &fixture->plan,
        .timeline = &fixture->hand.timeline,
        .steps = fixture->steps,
        .step_count = 1};
    assert_non_null(fixture->parts.model);
    assert_non_null(fixture->parts.cluster);
    for (unsigned r = 0; r < 2; r++) {
        fixture->hand.results[r].peak_label = UINT32_MAX;
    }
}

/* Asserts that the report is there. */
static inline struct report *fixture_report(struct report_fixture *fixture)
{
    struct report *report = report_build(&fixture->parts, fixture->arena, &fixture->errors);
    assert_non_null(report);
    return report;
}

static inline void fixture_free(struct report_fixture *fixture)
{
    arena_destroy(fixture->arena);
}

#endif
