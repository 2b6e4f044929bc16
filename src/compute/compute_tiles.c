/*
 * compute_tiles.c - time of matrix products cut into tiles.
 *
 *     cube = 2 g m n k / (peak * efficiency * k/(k + k_half) * sqrt(occupancy) * spill * align)
 *     hbm  = g ((mk + kn) * element + mn * result) / (hbm * hbm_efficiency)
 *
 * The result is cut into tiles, the tiles are dealt to the cores in waves, and
 * occupancy is the useful share of all slots. Its square root stands for what real
 * kernels win back: smaller tiles in the last wave, split k. The ramp k/(k + k_half)
 * is the time in which a tile's pipeline fills and its result is written out. A
 * tile may lie either way, and a product with fewer rows than a tile has pays for rows
 * in units of the 16 x 16 array only.
 *
 * A result that moves more than one element per value (a weight gradient that is read from a
 * 32-bit buffer, added to and written back) holds its core for the excess at the rate of the L2:
 * the accumulators of a tile are not free for the next one before.
 *
 * Every factor keeps the time from falling when m, n or k grows (k: along multiples of
 * the alignment).
 */
#include <math.h>

#include "compute_internal.h"

#include "stepsim/error.h"

/* Rows and columns of one step of the array: 16 x 16 x 16 on every Ascend cube core
 * (platform configuration files of CANN), 16 rows on the tensor cores of a GPU. */
#define ARRAY_EDGE 16.0

struct tiling {
    double tiles_m, tiles_n; /* of one group */
    double waves;
    double occupancy;
    double rows, columns; /* that the tiles of one wave read */
};

static double array_multiple(double extent)
{
    return ARRAY_EDGE * ceil(extent / ARRAY_EDGE);
}

static double whole_tiles(double extent, double tile)
{
    return ceil(extent / tile);
}

/*
 * Expected pieces of something whose length scatters around a mean: on average half a piece
 * more than the quotient, and never less than one. Small changes of the mean then change the
 * time a little, as a change of routing does.
 */
static double expected_pieces(double extent, double piece)
{
    return fmax(1.0, extent / piece + 1.0 / 2.0);
}

static struct tiling cut(const struct matmul_shape *shape, double tile_m, double tile_n,
                         double cores)
{
    const double width = fmin(tile_n, array_multiple(shape->n));
    struct tiling tiling = {.tiles_n = whole_tiles(shape->n, width)};
    double height;
    if (shape->mean_rows) {
        tiling.tiles_m = expected_pieces(shape->m, tile_m);
        const double rows = ARRAY_EDGE * expected_pieces(shape->m, ARRAY_EDGE);
        height = fmin(tile_m, rows / tiling.tiles_m);
        tiling.waves = expected_pieces(shape->groups * tiling.tiles_m * tiling.tiles_n, cores);
    } else {
        height = fmin(tile_m, array_multiple(shape->m));
        tiling.tiles_m = whole_tiles(shape->m, height);
        tiling.waves = ceil(shape->groups * tiling.tiles_m * tiling.tiles_n / cores);
    }
    const double slots = tiling.waves * cores * height * width;
    tiling.occupancy = fmin(1.0, shape->groups * shape->m * shape->n / slots);
    tiling.rows = fmin(ceil(tiling.tiles_m), cores) * height;
    tiling.columns = fmin(tiling.tiles_n, cores) * width;
    return tiling;
}

/* Speed 1 while the working set fits, falling towards the device's ratio when ever less of
 * it does. The working set is what the tiles of one wave read, as in the tiling model of
 * the vendor's fused matmul operators. */
static double spill_speed(double working_set_bytes, const struct device_spec *device)
{
    if (working_set_bytes <= device->l2_bytes)
        return 1.0;
    const double outside = 1.0 - device->l2_bytes / working_set_bytes;
    return 1.0 / (1.0 + outside * (1.0 / device->matmul_spill_ratio - 1.0));
}

static double align_speed(const struct matmul_shape *shape, const struct device_spec *device)
{
    if (!shape->padded_k || device->matmul_align <= 0.0)
        return 1.0;
    return fmod(shape->k, device->matmul_align) == 0.0 ? 1.0 : device->matmul_unaligned_ratio;
}

/* Bytes of the result beyond one element per value. */
static double excess_bytes(const struct matmul_shape *shape)
{
    const double wide = fmax(0.0, shape->result_bytes - shape->element_bytes);
    return shape->groups * shape->m * shape->n * wide;
}

struct matmul_time compute_matmul_time(const struct matmul_shape *shape,
                                       const struct device_spec *device)
{
    const double product = shape->groups * shape->m * shape->n * shape->k;
    const double elements =
        shape->groups * (shape->m * shape->k + shape->k * shape->n + shape->m * shape->n);
    struct matmul_time time = {
        .flop = 2.0 * product,
        .bytes = elements * shape->element_bytes + excess_bytes(shape),
        .occupancy = 1.0,
        .k_ratio = 1.0,
        .spill_speed = 1.0,
        .align_speed = 1.0,
    };
    const double hbm_rate = device->hbm_bytes_per_s * device->hbm_efficiency;
    time.hbm_s = time.bytes / hbm_rate;
    if (product <= 0.0)
        return time;

    struct tiling best = cut(shape, device->matmul_tile_m, device->matmul_tile_n, device->cores);
    const struct tiling turned =
        cut(shape, device->matmul_tile_n, device->matmul_tile_m, device->cores);
    if (turned.occupancy > best.occupancy)
        best = turned;

    time.tiles = shape->groups * best.tiles_m * best.tiles_n;
    time.waves = best.waves;
    time.occupancy = best.occupancy;
    time.k_ratio = shape->k / (shape->k + device->matmul_k_half);
    time.working_set_bytes = (best.rows + best.columns) * shape->k * shape->element_bytes;
    time.spill_speed = spill_speed(time.working_set_bytes, device);
    time.align_speed = align_speed(shape, device);
    const double speed = device->matmul_efficiency * time.k_ratio * sqrt(time.occupancy) *
                         time.spill_speed * time.align_speed;
    time.result_s = excess_bytes(shape) / fmax(hbm_rate, device->l2_bytes_per_s);
    time.cube_s = time.flop / (device->peak_flop_per_s * speed);
    return time;
}

static void explain_matmul(const struct matmul_shape *shape, const struct matmul_time *time,
                           const struct device_spec *device, struct compute_cost *cost)
{
    if (shape->groups > 1.0)
        compute_term(cost, "groups", shape->groups, "", NULL);
    compute_term(cost, "m", shape->m, "rows", NULL);
    compute_term(cost, "n", shape->n, "columns", NULL);
    compute_term(cost, "k", shape->k, "", NULL);
    compute_term(cost, "peak", device->peak_flop_per_s, "FLOP/s", "cluster.device.peak");
    compute_term(cost, "efficiency", device->matmul_efficiency, "ratio",
                 "cluster.device.matmul_efficiency");
    compute_term(cost, "k_half", device->matmul_k_half, "", "cluster.device.matmul_k_half");
    compute_term(cost, "k/(k + k_half)", time->k_ratio, "ratio", NULL);
    compute_term(cost, "tile_m", device->matmul_tile_m, "rows", "cluster.device.matmul_tile_m");
    compute_term(cost, "tile_n", device->matmul_tile_n, "columns", "cluster.device.matmul_tile_n");
    compute_term(cost, "cores", device->cores, "", "cluster.device.cores");
    compute_term(cost, "tiles", time->tiles, "", NULL);
    compute_term(cost, "waves", time->waves, "", NULL);
    compute_term(cost, "occupancy", time->occupancy, "ratio", NULL);
    compute_term(cost, "working set", time->working_set_bytes, "bytes", NULL);
    compute_term(cost, "spill", time->spill_speed, "ratio", "cluster.device.matmul_spill_ratio");
    compute_term(cost, "align", time->align_speed, "ratio",
                 "cluster.device.matmul_unaligned_ratio");
    if (time->result_s > 0.0) {
        compute_term(cost, "result", shape->result_bytes, "bytes", NULL);
        compute_term(cost, "l2", device->l2_bytes_per_s, "bytes/s", "cluster.device.l2_bandwidth");
        compute_term(cost, "result/l2", time->result_s, "s", NULL);
    }
    compute_term(cost, "cube", time->cube_s, "s", NULL);
    compute_term(cost, "hbm", device->hbm_bytes_per_s, "bytes/s", "cluster.device.hbm_bandwidth");
    compute_term(cost, "hbm_efficiency", device->hbm_efficiency, "ratio",
                 "cluster.device.hbm_efficiency");
    compute_term(cost, "traffic/hbm", time->hbm_s, "s", NULL);
    compute_term(cost, "startup", device->matmul_startup_s, "s", "cluster.device.matmul_startup");
}

void compute_matmul_cost(const struct matmul_shape *shape, const struct device_spec *device,
                         double speed, bool explain, struct compute_cost *cost)
{
    ASSERT(speed > 0.0);
    struct matmul_time time = compute_matmul_time(shape, device);
    time.cube_s = time.cube_s / speed + time.result_s;
    const double work_s = fmax(time.cube_s, time.hbm_s);
    cost->time_s = work_s + device->matmul_startup_s;
    cost->flop = time.flop;
    cost->bytes = time.bytes;
    if (work_s < device->matmul_startup_s)
        cost->bound = "floor";
    else
        cost->bound = time.cube_s >= time.hbm_s ? "cube" : "hbm";
    if (explain)
        explain_matmul(shape, &time, device, cost);
}
