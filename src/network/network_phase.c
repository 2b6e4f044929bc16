/*
 * network_phase.c - shares of a transfer in whole picoseconds that add up to it.
 */
#include "network_internal.h"

sim_time network_phase_end(const struct network_run *run, uint32_t transfer, uint32_t phase,
                           sim_time duration)
{
    const struct network_transfer *of = &run->transfers[transfer];
    ASSERT(phase < of->phase_count);
    if (phase + 1 == of->phase_count)
        return duration;
    const network_wide share = run->phases[of->phase_first + phase].until;
    return (sim_time)((network_wide)duration * share >> 32);
}

sim_time network_phase_length(const struct network_run *run, uint32_t transfer, uint32_t phase,
                              sim_time duration)
{
    const sim_time end = network_phase_end(run, transfer, phase, duration);
    return phase == 0 ? end : end - network_phase_end(run, transfer, phase - 1, duration);
}
