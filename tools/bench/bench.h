/*
 * bench.h - the parts of stepsim_bench.
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

/* Seconds of a clock that only goes forward. */
double bench_now_s(void);
/* Seconds of processor time of this process; other processes hardly move it. */
double bench_cpu_s(void);

/* Nanoseconds per pop and push of both queues, by pending events and kind of delays. */
void bench_hold(void);
/* Ops and events a second of a synthetic step on all ranks and folded, bytes per rank. */
void bench_engine(void);
/* The headline scenario from its YAML to the finished report. */
void bench_headline(void);
/* Nanoseconds an op by kind, as a Markdown table. */
void bench_kinds(void);
/* 200 steps of the headline scenario whose expert loads drift, with dynamic placement. */
void bench_steps(void);
/* The headline job at 6,144 and 98,304 devices, folded and all ranks, with every network model,
 * as a Markdown table. */
void bench_scale(void);

#endif
