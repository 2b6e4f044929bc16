/* Blocks of a pipeline drawing, and both drawings, from programs written by hand. */
#include "engine_fixture.h"
#include "stepsim/gantt.h"

static struct arena *arena;

static void add(struct builder *b, uint32_t program, char pass, int32_t microbatch, sim_time time)
{
    builder_op(b, program,
               (struct build_op){.kind = PROGRAM_OP_COMPUTE,
                                 .duration = time,
                                 .pass = pass,
                                 .microbatch = microbatch,
                                 .name = "op"});
}

static const struct gantt *draw(struct builder *b)
{
    const struct programs *programs = builder_finish(b);
    return gantt_build(programs, run_all(programs, arena), arena);
}

static void check_half(struct gantt_half half, char pass, int32_t microbatch)
{
    assert_int_equal(half.pass, pass);
    assert_int_equal(half.microbatch, microbatch);
}

/* Ops of one pass join; recomputation belongs to its backward; the optimizer has no number. */
static void ops_of_one_pass_are_one_block(void **state)
{
    (void)state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    add(b, p, 'F', 0, 10);
    add(b, p, 'F', 0, 5);
    add(b, p, 'F', 1, 15);
    add(b, p, 'R', 0, 10);
    add(b, p, 'B', 0, 20);
    add(b, p, 'O', -1, 4);
    for (int i = 0; i < 2; i++) { /* the optimizer waits for two copies */
        const struct op_ref copy = builder_op(b, p,
                                              (struct build_op){.kind = PROGRAM_OP_COPY,
                                                                .stream = STREAM_COPY_IN,
                                                                .duration = 100 * (i + 1),
                                                                .name = "copy"});
        const struct op_ref op = builder_op(
            b, p, (struct build_op){.duration = 4, .name = "op", .pass = 'O', .microbatch = -1});
        builder_wait(b, p, op, copy);
    }
    builder_rank(b, builder_class(b, p, 0, 0));
    const struct gantt *gantt = draw(b);
    assert_int_equal(gantt->row_count, 1);
    const struct gantt_row *row = &gantt->rows[0];
    assert_int_equal(row->block_count, 6); /* 3 passes, 3 parts of the optimizer */
    check_half(row->blocks[0].halves[0], 'F', 0);
    assert_time_equal(row->blocks[0].end, 15);
    check_half(row->blocks[1].halves[0], 'F', 1);
    check_half(row->blocks[2].halves[0], 'B', 0);
    assert_time_equal(row->blocks[2].start, 30);
    assert_time_equal(row->blocks[2].end, 60);
    check_half(row->blocks[3].halves[0], 'O', -1);
    assert_time_equal(row->blocks[3].end, 64);
    assert_time_equal(row->blocks[4].start, 100);
    assert_time_equal(row->blocks[5].start, 300);
    for (uint32_t i = 0; i < row->block_count; i++) {
        assert_int_equal(row->blocks[i].halves[1].pass, 0);
    }
}

/* F3 B1 F3 B1 is one block of two halves; the F4 that follows is not part of it. */
static void passes_in_turns_are_one_block(void **state)
{
    (void)state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    add(b, p, 'F', 3, 10);
    add(b, p, 'B', 1, 10);
    add(b, p, 'F', 3, 10);
    add(b, p, 'B', 1, 10);
    add(b, p, 'F', 4, 10);
    add(b, p, 'B', 2, 10);
    builder_rank(b, builder_class(b, p, 0, 0));
    const struct gantt_row *row = &draw(b)->rows[0];
    assert_int_equal(row->block_count, 3);
    check_half(row->blocks[0].halves[0], 'F', 3);
    check_half(row->blocks[0].halves[1], 'B', 1);
    assert_time_equal(row->blocks[0].end, 40);
    check_half(row->blocks[1].halves[0], 'F', 4);
    assert_int_equal(row->blocks[1].halves[1].pass, 0);
}

/* Two stages, forward 10 and backward 20, messages free: the drawing that one makes by hand.
 * Stage 0: F0 F1 idle(10) B0(20) B1(20), stage 1 starts at 10. */
static struct builder *two_stages(void)
{
    struct builder *b = builder_create(arena);
    const uint32_t first = builder_program(b);
    const uint32_t last = builder_program(b);
    uint32_t classes[2];
    for (int32_t m = 0; m < 2; m++) {
        add(b, first, 'F', m, 10);
        const struct op_ref send = builder_op(b, first,
                                              (struct build_op){.kind = PROGRAM_OP_SEND,
                                                                .stream = STREAM_SEND,
                                                                .peer = PEER_NEXT,
                                                                .message = (uint32_t)m});
        builder_wait(b, first, send, (struct op_ref){STREAM_COMPUTE, (uint32_t)m});
        builder_op(b, last,
                   (struct build_op){.kind = PROGRAM_OP_RECV,
                                     .stream = STREAM_RECV,
                                     .peer = PEER_PREVIOUS,
                                     .message = (uint32_t)m});
    }
    for (int32_t m = 0; m < 2; m++) {
        for (int pass = 0; pass < 2; pass++) {
            const struct op_ref op = builder_op(b, last,
                                                (struct build_op){.duration = pass == 0 ? 10 : 20,
                                                                  .name = "op",
                                                                  .pass = pass == 0 ? 'F' : 'B',
                                                                  .microbatch = m});
            if (pass == 0) {
                builder_wait(b, last, op, (struct op_ref){STREAM_RECV, (uint32_t)m});
            }
            if (pass == 1) {
                const struct op_ref send = builder_op(b, last,
                                                      (struct build_op){.kind = PROGRAM_OP_SEND,
                                                                        .stream = STREAM_SEND,
                                                                        .peer = PEER_PREVIOUS,
                                                                        .message = (uint32_t)m});
                builder_wait(b, last, send, op);
            }
        }
        const struct op_ref recv = builder_op(b, first,
                                              (struct build_op){.kind = PROGRAM_OP_RECV,
                                                                .stream = STREAM_RECV,
                                                                .peer = PEER_NEXT,
                                                                .message = (uint32_t)m});
        const struct op_ref back = builder_op(
            b, first,
            (struct build_op){.duration = 20, .name = "op", .pass = 'B', .microbatch = m});
        builder_wait(b, first, back, recv);
    }
    classes[0] = builder_class(b, first, 0, 0);
    classes[1] = builder_class(b, last, 1, 0);
    const uint32_t r0 = builder_rank(b, classes[0]);
    const uint32_t r1 = builder_rank(b, classes[1]);
    builder_link(b, r0, r1);
    return b;
}

/* Stage 0: F0 0-10, F1 10-20, B0 40-60 (stage 1: F0 10-20, B0 20-40), B1 70-90 (F1 40-50,
 * B1 50-70). 30 columns of 3. */
static void text_is_the_drawing_by_hand(void **state)
{
    (void)state;
    const struct gantt *gantt = draw(two_stages());
    assert_time_equal(gantt->end, 90);
    assert_string_equal(gantt_text(gantt, 45, arena),
                        "    0  F0fffF1fff..........B0bbbbbbbb.....B1bbbbbbbb\n"
                        "    1  .....F0fffB0bbbbbbbbF1fffB1bbbbbbbb..........\n");
    /* Columns of 45. Stage 0: forward 20, backward 5, idle 20; then backward 35. Stage 1: forward
     * 15, backward 20; then forward 5, backward 20, idle 20. */
    assert_string_equal(gantt_text(gantt, 2, arena), "    0  fb\n"
                                                     "    1  xb\n");
}

/* Every block is drawn, to scale: 1500 pixels are 90 ps. */
static void svg_holds_every_block(void **state)
{
    (void)state;
    const char *svg = gantt_svg(draw(two_stages()), "a < b & c", arena);
    assert_non_null(strstr(svg, "a &lt; b &amp; c"));
    uint32_t blocks = 0;
    for (const char *at = svg; (at = strstr(at, "<g><title>")) != NULL; at++) {
        blocks++;
    }
    assert_int_equal(blocks, 8);
    /* B0 of stage 0: 40 of 90 behind the margin of 70, 20 of 90 wide. */
    assert_non_null(strstr(svg, "<rect x=\"736.67\" y=\"66.0\" width=\"333.33\""));
    assert_non_null(strstr(svg, "stage 1: backward of microbatch 1, 5e-11 to 7e-11 s"));
}

static int setup(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ops_of_one_pass_are_one_block, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_in_turns_are_one_block, setup, teardown),
        cmocka_unit_test_setup_teardown(text_is_the_drawing_by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(svg_holds_every_block, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
