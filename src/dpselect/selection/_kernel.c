/* The passes over many numbers of selection/kernel.py, for double and int64_t.

   NumPy does the same next to each caller of selection/kernel.py, and is the reference. No function draws a random bit,
   and none decides an output where its error bound leaves a doubt: it says so, and Python decides exactly. Scores may be
   changed by another thread at any time, so every write is checked against the length of its buffer, and every read
   against the length of its own.

   Only the stable ABI is used, so one build serves Python 3.11 and every later version. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Grows with every change of a function or of its arguments. selection/kernel.py uses no other version. */
#define VERSION 9

/* On x86-64 with glibc the loader chooses the version for the processor. Elsewhere there is one version. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

#if defined(_MSC_VER)
#define RESTRICT __restrict
#else
#define RESTRICT restrict
#endif

#define LANES 16
#define GROUP 2 /* parts whose maxima are found before their hot candidates: they stay in the cache */
#define DEEPEST 20
#define CHUNK 256 /* coins that are flipped together */
#define MOST_ZEROS 50 /* so that a skip has 64 bits */
/* The GIL is kept for fewer numbers than this: to release it costs more than another thread could gain. */
#define MANY 65536

#define MOST_BUFFERS 9

/* The buffers of one call, which are released together. */
typedef struct {
    Py_buffer views[MOST_BUFFERS];
    int count;
} Buffers;

static void *taken(Buffers *buffers, PyObject *object, Py_ssize_t size, Py_ssize_t *length, int flags)
{
    Py_buffer *view = &buffers->views[buffers->count];
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return NULL;
    buffers->count++;
    if (!view->buf || (uintptr_t)view->buf % (uintptr_t)size || view->len % size) {
        PyErr_SetString(PyExc_ValueError, "a buffer is not aligned");
        return NULL;
    }
    *length = view->len / size;
    return view->buf;
}

static PyObject *released(Buffers *buffers, PyObject *result)
{
    while (buffers->count)
        PyBuffer_Release(&buffers->views[--buffers->count]);
    return result;
}

static PyObject *wrong(Buffers *buffers, const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return released(buffers, NULL);
}

/* maxima: the largest of each `width` numbers; the last part may be shorter. */

/* The bits of doubles, as integers in the order of the doubles: negative ones are reversed by flipping all bits but the
   sign. `flips` has these bits; it is zero for integers, which are in order already. */
ALWAYS_INLINE int64_t in_order(int64_t bits, int64_t flips)
{
    return bits ^ ((bits >> 63) & flips);
}

/* Integer reductions, which compilers keep in vectors. Infinities and NaN are the first and the last of the order, so
   the smallest and the largest number show whether all are finite. */
ALWAYS_INLINE int find_maxima(const int64_t *bits, Py_ssize_t count, Py_ssize_t width, int64_t flips, int64_t *out)
{
    const int64_t infinity = 0x7FF0000000000000;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (Py_ssize_t start = 0; start < count; start += width) {
        Py_ssize_t stop = count - start < width ? count : start + width;
        int64_t low = INT64_MAX, high = INT64_MIN;
        for (Py_ssize_t i = start; i < stop; i++) {
            int64_t one = in_order(bits[i], flips);
            high = one > high ? one : high;
            low = one < low ? one : low;
        }
        least = low < least ? low : least;
        most = high > most ? high : most;
        out[start / width] = in_order(high, flips);
    }
    return !flips || (most < infinity && least >= -infinity);
}

FOR_EACH_PROCESSOR
static int maxima_of_doubles(const int64_t *bits, Py_ssize_t count, Py_ssize_t width, int64_t *out)
{
    return find_maxima(bits, count, width, INT64_MAX, out);
}

FOR_EACH_PROCESSOR
static int maxima_of_integers(const int64_t *values, Py_ssize_t count, Py_ssize_t width, int64_t *out)
{
    return find_maxima(values, count, width, 0, out);
}

static PyObject *maxima(PyObject *Py_UNUSED(module), PyObject *args)
{
    int whole, is_finite;
    PyObject *values_of, *out_of;
    Py_ssize_t width, count, parts;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "pOnO", &whole, &values_of, &width, &out_of))
        return NULL;
    void *values = taken(&buffers, values_of, 8, &count, PyBUF_SIMPLE);
    void *out = values ? taken(&buffers, out_of, 8, &parts, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (width < 1 || count < 1 || parts != (count - 1) / width + 1)
        return wrong(&buffers, "the lengths do not fit");
    PyThreadState *state = count < MANY ? NULL : PyEval_SaveThread();
    is_finite = whole ? maxima_of_integers(values, count, width, out) : maxima_of_doubles(values, count, width, out);
    if (state)
        PyEval_RestoreThread(state);
    return released(&buffers, PyBool_FromLong(is_finite));
}

/* scan: the maxima again, the best of all and the floor below it, and in the same pass the positions and values of the
   candidates that reach that floor. Those that reach the floor of the best value so far are listed, because no later
   floor is below it. In the end those that reach the last floor stay. */

typedef struct {
    int64_t *positions;
    void *values;
    Py_ssize_t most, found; /* found is -1 once there are more than fit */
} Hot;

static double floor_of_double(double best, double gap)
{
    return nextafter(best - gap, -INFINITY);
}

static int64_t floor_of_integer(int64_t best, uint64_t gap)
{
    return (uint64_t)best - (uint64_t)INT64_MIN < gap ? INT64_MIN : (int64_t)((uint64_t)best - gap);
}

/* Each candidate is written; only those that count move the end of the list, so there is no branch to mispredict. */
#define SCAN(TYPE, NAME, FLIPS, GAP, FLOOR)                                                                            \
    FOR_EACH_PROCESSOR                                                                                                 \
    static void add_##NAME(const TYPE *values, Py_ssize_t start, Py_ssize_t stop, TYPE floor, Hot *hot)                \
    {                                                                                                                  \
        for (Py_ssize_t i = start; i < stop; i += LANES) {                                                             \
            Py_ssize_t last = stop - i < LANES ? stop : i + LANES, found = hot->found;                                 \
            int any = 0;                                                                                               \
            for (Py_ssize_t j = i; j < last; j++)                                                                      \
                any |= values[j] >= floor;                                                                             \
            if (!any)                                                                                                  \
                continue;                                                                                              \
            if (found + LANES > hot->most) {                                                                           \
                hot->found = -1;                                                                                       \
                return;                                                                                                \
            }                                                                                                          \
            for (Py_ssize_t j = i; j < last; j++) {                                                                    \
                TYPE one = values[j];                                                                                  \
                hot->positions[found] = j;                                                                             \
                ((TYPE *)hot->values)[found] = one;                                                                    \
                found += one >= floor;                                                                                 \
            }                                                                                                          \
            hot->found = found;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    FOR_EACH_PROCESSOR                                                                                                 \
    static int NAME(const int64_t *bits, Py_ssize_t count, Py_ssize_t width, TYPE *known, GAP gap, TYPE *last_floor,   \
                    void *out, Hot *hot)                                                                               \
    {                                                                                                                  \
        int is_finite = 1;                                                                                             \
        const TYPE *high = (const TYPE *)out;                                                                          \
        TYPE best = *known, seen = best, floor = FLOOR(best, gap), *scores = hot->values;                              \
        for (Py_ssize_t start = 0; start < count; start += GROUP * width) {                                            \
            Py_ssize_t stop = count - start < GROUP * width ? count : start + GROUP * width;                           \
            Py_ssize_t first = start / width, last = (stop - 1) / width;                                               \
            is_finite &= find_maxima(bits + start, stop - start, width, FLIPS, (int64_t *)out + first);                \
            for (Py_ssize_t part = first; part <= last; part++)                                                        \
                best = high[part] > best ? high[part] : best;                                                          \
            if (best > seen)                                                                                           \
                floor = FLOOR(seen = best, gap);                                                                       \
            for (Py_ssize_t part = first; part <= last && hot->found >= 0; part++)                                     \
                if (high[part] >= floor) {                                                                             \
                    Py_ssize_t end = stop - part * width < width ? stop : (part + 1) * width;                          \
                    add_##NAME((const TYPE *)bits, part * width, end, floor, hot);                                     \
                }                                                                                                      \
        }                                                                                                              \
        Py_ssize_t left = 0;                                                                                           \
        for (Py_ssize_t i = 0; i < hot->found; i++) {                                                                  \
            hot->positions[left] = hot->positions[i];                                                                  \
            scores[left] = scores[i];                                                                                  \
            left += scores[left] >= floor;                                                                             \
        }                                                                                                              \
        hot->found = hot->found < 0 ? -1 : left;                                                                       \
        *known = best;                                                                                                 \
        *last_floor = floor;                                                                                           \
        return is_finite;                                                                                              \
    }

SCAN(double, scan_doubles, INT64_MAX, double, floor_of_double)
SCAN(int64_t, scan_integers, 0, uint64_t, floor_of_integer)

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    int whole, is_finite;
    PyObject *values_of, *out_of, *best_of, *gap_of, *positions_of, *hot_of;
    Py_ssize_t width, count, parts, room;
    Hot hot = {.found = 0};
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "pOnOOOOO", &whole, &values_of, &width, &best_of, &gap_of, &out_of, &positions_of,
                          &hot_of))
        return NULL;
    double best = whole ? 0 : PyFloat_AsDouble(best_of), gap = whole ? 0 : PyFloat_AsDouble(gap_of);
    double floor = 0;
    int64_t whole_best = whole ? PyLong_AsLongLong(best_of) : 0, whole_floor = 0;
    uint64_t within = whole ? PyLong_AsUnsignedLongLong(gap_of) : 0;
    if (PyErr_Occurred())
        return NULL;
    const void *values = taken(&buffers, values_of, 8, &count, PyBUF_SIMPLE);
    void *out = values ? taken(&buffers, out_of, 8, &parts, PyBUF_WRITABLE) : NULL;
    hot.positions = out ? taken(&buffers, positions_of, 8, &hot.most, PyBUF_WRITABLE) : NULL;
    hot.values = hot.positions ? taken(&buffers, hot_of, 8, &room, PyBUF_WRITABLE) : NULL;
    if (!hot.values)
        return released(&buffers, NULL);
    if (width < 1 || count < 1 || parts != (count - 1) / width + 1 || room != hot.most)
        return wrong(&buffers, "the lengths do not fit");
    width = width < count ? width : count; /* so that no multiple of it overflows */
    PyThreadState *state = count < MANY ? NULL : PyEval_SaveThread();
    is_finite = whole ? scan_integers(values, count, width, &whole_best, within, &whole_floor, out, &hot)
                      : scan_doubles(values, count, width, &best, gap, &floor, out, &hot);
    if (state)
        PyEval_RestoreThread(state);
    PyObject *found = whole ? Py_BuildValue("LL", (long long)whole_best, (long long)whole_floor)
                            : Py_BuildValue("dd", best, floor);
    return released(&buffers, found ? Py_BuildValue("ONn", is_finite ? Py_True : Py_False, found, hot.found) : NULL);
}

/* at_least: the positions of the numbers that reach the floor of their part. */

#define AT_LEAST(TYPE, NAME)                                                                                           \
    static Py_ssize_t NAME(const TYPE *values, Py_ssize_t count, Py_ssize_t width, const TYPE *floors, Py_ssize_t step, \
                           int64_t *out, Py_ssize_t most)                                                              \
    {                                                                                                                  \
        Py_ssize_t found = 0;                                                                                          \
        for (Py_ssize_t start = 0, part = 0; start < count; start += width, part++) {                                  \
            Py_ssize_t stop = count - start < width ? count : start + width;                                           \
            TYPE floor = floors[part * step];                                                                          \
            for (Py_ssize_t i = start; i < stop; i += LANES) {                                                         \
                Py_ssize_t last = stop - i < LANES ? stop : i + LANES;                                                 \
                if (found + LANES > most)                                                                              \
                    return -1;                                                                                         \
                for (Py_ssize_t j = i; j < last; j++) {                                                                \
                    out[found] = j;                                                                                    \
                    found += values[j] >= floor;                                                                       \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return found;                                                                                                  \
    }

AT_LEAST(double, doubles_at_least)
AT_LEAST(int64_t, integers_at_least)

static PyObject *at_least(PyObject *Py_UNUSED(module), PyObject *args)
{
    int whole;
    PyObject *values_of, *floors_of, *out_of;
    Py_ssize_t width, count, floors, most, found;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "pOnOO", &whole, &values_of, &width, &floors_of, &out_of))
        return NULL;
    const void *values = taken(&buffers, values_of, 8, &count, PyBUF_SIMPLE);
    const void *floor = values ? taken(&buffers, floors_of, 8, &floors, PyBUF_SIMPLE) : NULL;
    void *out = floor ? taken(&buffers, out_of, 8, &most, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (width < 1 || count < 1 || (floors != 1 && floors != (count - 1) / width + 1))
        return wrong(&buffers, "the lengths do not fit");
    found = whole ? integers_at_least(values, count, width, floor, floors > 1, out, most)
                  : doubles_at_least(values, count, width, floor, floors > 1, out, most);
    return released(&buffers, PyLong_FromSsize_t(found));
}

/* skips: floor(ln V / ln(1 - 2**-zeros)) for each V that starts with a word of 32 bits; -1 where that is in doubt. */

typedef struct {
    double slope, scale, margin;
} Inversion;

static Inversion inversion(int zeros, double margin)
{
    return (Inversion){log1p(-ldexp(1.0, -zeros)), ldexp(1.0, zeros), margin};
}

/* The bounds are derived in selection/geometric.py. */
ALWAYS_INLINE int64_t skip_of(uint32_t word, Inversion by)
{
    double middle = word + 0.5;
    double quotient = log(middle * 0x1p-32) / by.slope;
    double doubt = by.scale / middle + quotient * by.margin;
    double low = floor(quotient - doubt);
    return low == floor(quotient + doubt) ? (int64_t)low : -1;
}

static PyObject *skips(PyObject *Py_UNUSED(module), PyObject *args)
{
    int zeros;
    double margin;
    PyObject *words_of, *out_of;
    Py_ssize_t count, room, doubtful = 0;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OidO", &words_of, &zeros, &margin, &out_of))
        return NULL;
    const uint32_t *words = taken(&buffers, words_of, 4, &count, PyBUF_SIMPLE);
    int64_t *out = words ? taken(&buffers, out_of, 8, &room, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (room != count || zeros < 1 || zeros > MOST_ZEROS)
        return wrong(&buffers, "the lengths do not fit");
    Inversion by = inversion(zeros, margin);
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = skip_of(words[i], by);
        doubtful += out[i] < 0;
    }
    return released(&buffers, PyLong_FromSsize_t(doubtful));
}

/* successes: the positions after `last` at which a process succeeds whose skips these are. Returns how many of them are
   below `trials`, and stops there; -1 if a skip before is in doubt. */

static PyObject *successes(PyObject *Py_UNUSED(module), PyObject *args)
{
    int zeros;
    double margin;
    PyObject *words_of, *out_of;
    Py_ssize_t count, room, found = 0;
    long long last, trials;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OidLLO", &words_of, &zeros, &margin, &last, &trials, &out_of))
        return NULL;
    const uint32_t *words = taken(&buffers, words_of, 4, &count, PyBUF_SIMPLE);
    int64_t *out = words ? taken(&buffers, out_of, 8, &room, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (room != count || zeros < 1 || zeros > MOST_ZEROS || last < -1 || trials < 0)
        return wrong(&buffers, "the lengths do not fit");
    Inversion by = inversion(zeros, margin);
    for (; found < count; found++) { /* trials - 1 - last does not overflow, as last >= -1 and trials >= 0 */
        int64_t skip = skip_of(words[found], by);
        if (skip < 0)
            return released(&buffers, PyLong_FromLong(-1));
        if (skip >= trials - 1 - last)
            break;
        out[found] = last += skip + 1;
    }
    return released(&buffers, PyLong_FromSsize_t(found));
}

/* Some candidates of a vector, or of rows of `width` with a best value (or a floor) each; and a number for each of them. */
typedef struct {
    const void *values, *best;
    const int64_t *positions;
    void *out;
    Py_ssize_t width, count, chosen, bests;
    int64_t part, start, stop; /* the last row, which is nearly always that of the next candidate: a division is slow */
} Candidates;

/* The values, and one number for all parts of them, or one for each. */
static int take_values(Buffers *buffers, Candidates *some, PyObject *values, PyObject *best)
{
    some->values = taken(buffers, values, 8, &some->count, PyBUF_SIMPLE);
    some->best = some->values ? taken(buffers, best, 8, &some->bests, PyBUF_SIMPLE) : NULL;
    if (!some->best)
        return 0;
    some->part = some->start = 0;
    some->stop = some->bests > 1 ? some->width : some->count;
    return 1;
}

static int are_inside(const Candidates *some, const int64_t *positions, Py_ssize_t count)
{
    int inside = some->width > 0 && some->count > 0
                 && (some->bests == 1 || some->bests == (some->count - 1) / some->width + 1);
    for (Py_ssize_t i = 0; inside && i < count; i++)
        inside = positions[i] >= 0 && positions[i] < some->count;
    return inside;
}

static int take_candidates(Buffers *buffers, Candidates *some, PyObject *values, PyObject *positions, PyObject *best,
                           PyObject *out)
{
    Py_ssize_t room;
    int is_taken = take_values(buffers, some, values, best);
    some->positions = is_taken ? taken(buffers, positions, 8, &some->chosen, PyBUF_SIMPLE) : NULL;
    some->out = some->positions ? taken(buffers, out, 8, &room, PyBUF_WRITABLE) : NULL;
    if (!some->out)
        return 0;
    int fits = room == some->chosen && are_inside(some, some->positions, some->chosen);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the lengths do not fit");
    return fits;
}

ALWAYS_INLINE int64_t part_of(Candidates *some, int64_t position)
{
    if (position < some->start || position >= some->stop) {
        some->part = position / some->width;
        some->start = some->part * some->width;
        some->stop = some->start + some->width;
    }
    return some->part;
}

ALWAYS_INLINE uint64_t whole_gap(Candidates *some, Py_ssize_t i)
{
    int64_t position = some->positions[i];
    return ((const uint64_t *)some->best)[part_of(some, position)] - ((const uint64_t *)some->values)[position];
}

ALWAYS_INLINE double float_gap(Candidates *some, Py_ssize_t i)
{
    int64_t position = some->positions[i];
    return ((const double *)some->best)[part_of(some, position)] - ((const double *)some->values)[position];
}

/* exponents: rate * (best - value) of some candidates. False if one of the gaps is negative or NaN. */

static PyObject *exponents(PyObject *Py_UNUSED(module), PyObject *args)
{
    int whole, is_sound = 1;
    double rate;
    Candidates some;
    PyObject *values_of, *positions_of, *bests_of, *out_of;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "pOOOndO", &whole, &values_of, &positions_of, &bests_of, &some.width, &rate, &out_of))
        return NULL;
    if (!take_candidates(&buffers, &some, values_of, positions_of, bests_of, out_of))
        return released(&buffers, NULL);
    for (Py_ssize_t i = 0; i < some.chosen; i++) {
        double gap = whole ? (double)whole_gap(&some, i) : float_gap(&some, i);
        is_sound &= gap >= 0;
        ((double *)some.out)[i] = gap * rate;
    }
    return released(&buffers, PyBool_FromLong(is_sound));
}

/* gaps: best - value of some candidates; of integers modulo 2**64, as in `Gaps.of`. */

static PyObject *gaps(PyObject *Py_UNUSED(module), PyObject *args)
{
    int whole;
    Candidates some;
    PyObject *values_of, *positions_of, *bests_of, *out_of;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "pOOOnO", &whole, &values_of, &positions_of, &bests_of, &some.width, &out_of))
        return NULL;
    if (!take_candidates(&buffers, &some, values_of, positions_of, bests_of, out_of))
        return released(&buffers, NULL);
    for (Py_ssize_t i = 0; i < some.chosen; i++)
        if (whole)
            ((uint64_t *)some.out)[i] = whole_gap(&some, i);
        else
            ((double *)some.out)[i] = float_gap(&some, i);
    return released(&buffers, Py_NewRef(Py_None));
}

/* joined: the positions, values and depths of the hot candidates, whose coins have no known bit; then those of the
   survivors that are below the floor of their part, whose coins start with so many zeros. Returns how many there are. */

static PyObject *joined(PyObject *Py_UNUSED(module), PyObject *args)
{
    int whole;
    Candidates some;
    PyObject *values_of, *floors_of, *hot_of, *known_of, *survivors_of, *zeros_of, *positions_of, *scores_of, *depths_of;
    Py_ssize_t hot_count, known_count, survivors_count, zeros_count, room, scores_room, depths_room, found;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "pOOnOOOOOOO", &whole, &values_of, &floors_of, &some.width, &hot_of, &known_of,
                          &survivors_of, &zeros_of, &positions_of, &scores_of, &depths_of))
        return NULL;
    int is_taken = take_values(&buffers, &some, values_of, floors_of);
    const int64_t *hot = is_taken ? taken(&buffers, hot_of, 8, &hot_count, PyBUF_SIMPLE) : NULL;
    const int64_t *known = hot ? taken(&buffers, known_of, 8, &known_count, PyBUF_SIMPLE) : NULL;
    const int64_t *survivors = known ? taken(&buffers, survivors_of, 8, &survivors_count, PyBUF_SIMPLE) : NULL;
    const uint8_t *zeros = survivors ? taken(&buffers, zeros_of, 1, &zeros_count, PyBUF_SIMPLE) : NULL;
    int64_t *positions = zeros ? taken(&buffers, positions_of, 8, &room, PyBUF_WRITABLE) : NULL;
    int64_t *scores = positions ? taken(&buffers, scores_of, 8, &scores_room, PyBUF_WRITABLE) : NULL;
    uint8_t *depths = scores ? taken(&buffers, depths_of, 1, &depths_room, PyBUF_WRITABLE) : NULL;
    if (!depths)
        return released(&buffers, NULL);
    if (known_count != hot_count || room != hot_count + survivors_count || scores_room != room || depths_room != room
        || (zeros_count != 1 && zeros_count != survivors_count) || !are_inside(&some, survivors, survivors_count))
        return wrong(&buffers, "the lengths do not fit");
    memcpy(positions, hot, (size_t)hot_count * sizeof *hot);
    memcpy(scores, known, (size_t)hot_count * sizeof *known);
    memset(depths, 0, (size_t)hot_count);
    found = hot_count;
    for (Py_ssize_t i = 0; i < survivors_count; i++) {
        int64_t position = survivors[i], bits = ((const int64_t *)some.values)[position], part = part_of(&some, position);
        double value;
        memcpy(&value, &bits, sizeof value); /* read once: it may change */
        positions[found] = position;
        scores[found] = bits;
        depths[found] = zeros[zeros_count > 1 ? i : 0];
        found += whole ? bits < ((const int64_t *)some.best)[part] : value < ((const double *)some.best)[part];
    }
    return released(&buffers, PyLong_FromSsize_t(found));
}

/* octets: which coins their first octet decides (`selection.octets`, `selection.lines`): 1 heads, 0 tails, 2 open.

   The levels are gaps, and small ones are heads; or scores, and large ones are. Octets from `last` on are never heads.
   There are no branches, so the time does not depend on the scores. */

#define DECIDE(TYPE, REACHES, NAME)                                                                                    \
    FOR_EACH_PROCESSOR                                                                                                 \
    static void NAME(const TYPE *levels, Py_ssize_t count, const TYPE *near, const TYPE *far, const uint8_t *octet,    \
                     int last, uint8_t *RESTRICT out)                                                                  \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            int is_head = (levels[i] REACHES near[octet[i]]) & (octet[i] < last);                                      \
            int is_near = levels[i] REACHES far[octet[i]];                                                             \
            out[i] = (uint8_t)(is_head | (is_head ^ is_near) << 1);                                                    \
        }                                                                                                              \
    }

DECIDE(uint64_t, <=, decide_whole_gaps)
DECIDE(double, <=, decide_float_gaps)
DECIDE(double, >=, decide_float_scores)

enum { WHOLE_GAPS, FLOAT_GAPS, FLOAT_SCORES };

static PyObject *octets(PyObject *Py_UNUSED(module), PyObject *args)
{
    int kind, last;
    PyObject *levels_of, *near_of, *far_of, *octets_of, *out_of;
    Py_ssize_t count, near_count, far_count, octets_count, room;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "iiOOOOO", &kind, &last, &levels_of, &near_of, &far_of, &octets_of, &out_of))
        return NULL;
    const void *levels = taken(&buffers, levels_of, 8, &count, PyBUF_SIMPLE);
    const void *near = levels ? taken(&buffers, near_of, 8, &near_count, PyBUF_SIMPLE) : NULL;
    const void *far = near ? taken(&buffers, far_of, 8, &far_count, PyBUF_SIMPLE) : NULL;
    const uint8_t *octet = far ? taken(&buffers, octets_of, 1, &octets_count, PyBUF_SIMPLE) : NULL;
    uint8_t *out = octet ? taken(&buffers, out_of, 1, &room, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (near_count != 256 || far_count != 256 || octets_count != count || room != count)
        return wrong(&buffers, "the lengths do not fit");
    PyThreadState *state = count < MANY ? NULL : PyEval_SaveThread();
    if (kind == WHOLE_GAPS)
        decide_whole_gaps(levels, count, near, far, octet, last, out);
    else if (kind == FLOAT_GAPS)
        decide_float_gaps(levels, count, near, far, octet, last, out);
    else
        decide_float_scores(levels, count, near, far, octet, last, out);
    if (state)
        PyEval_RestoreThread(state);
    return released(&buffers, Py_NewRef(Py_None));
}

/* table: the same for whole gaps that a table of lines decides; beyond the table a gap has its last line. */

static PyObject *table(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *gaps_of, *lines_of, *octets_of, *out_of;
    Py_ssize_t count, lines, octets_count, room;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OOOO", &gaps_of, &lines_of, &octets_of, &out_of))
        return NULL;
    const uint64_t *gap = taken(&buffers, gaps_of, 8, &count, PyBUF_SIMPLE);
    const uint8_t *line = gap ? taken(&buffers, lines_of, 1, &lines, PyBUF_SIMPLE) : NULL;
    const uint8_t *octet = line ? taken(&buffers, octets_of, 1, &octets_count, PyBUF_SIMPLE) : NULL;
    uint8_t *out = octet ? taken(&buffers, out_of, 1, &room, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (lines < 1 || octets_count != count || room != count)
        return wrong(&buffers, "the lengths do not fit");
    PyThreadState *state = count < MANY ? NULL : PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t last = (uint64_t)lines - 1, place = gap[i];
        uint8_t own = line[place < last ? place : last];
        out[i] = (uint8_t)((octet[i] < own) | (octet[i] == own) << 1);
    }
    if (state)
        PyEval_RestoreThread(state);
    return released(&buffers, Py_NewRef(Py_None));
}

/* coins: whether U < exp(-exponent), from the known first bits of each U: 1 heads, 0 tails, 2 in doubt.

   Nothing here branches on an exponent or a coin, because a steady selection must take the same time for all scores.
   exp of a number below 2**-54 takes less time than of others, which would count the best candidates for somebody with
   a stopwatch. So smaller exponents are raised to 2**-50. That moves the boundary by a factor of 2**-50, far inside the
   margin of 2**-42. */

FOR_EACH_PROCESSOR
static void clamp(const double *numbers, Py_ssize_t count, double least, double most, double *RESTRICT out)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        double raised = numbers[i] > least ? numbers[i] : least;
        out[i] = raised < most ? raised : most;
    }
}

static PyObject *coins(PyObject *Py_UNUSED(module), PyObject *args)
{
    double margin, slack, vanished;
    PyObject *exponents_of, *words_of, *prefixes_of, *depths_of, *out_of;
    Py_ssize_t count, words_count, prefixes_count, depths_count, room, doubtful = 0;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OOOOdddO", &exponents_of, &words_of, &prefixes_of, &depths_of, &margin, &slack,
                          &vanished, &out_of))
        return NULL;
    const double *exponent = taken(&buffers, exponents_of, 8, &count, PyBUF_SIMPLE);
    const uint32_t *words = exponent ? taken(&buffers, words_of, 4, &words_count, PyBUF_SIMPLE) : NULL;
    const uint32_t *prefixes = words ? taken(&buffers, prefixes_of, 4, &prefixes_count, PyBUF_SIMPLE) : NULL;
    const uint8_t *depths = prefixes ? taken(&buffers, depths_of, 1, &depths_count, PyBUF_SIMPLE) : NULL;
    uint8_t *out = depths ? taken(&buffers, out_of, 1, &room, PyBUF_WRITABLE) : NULL;
    if (!out)
        return released(&buffers, NULL);
    if (words_count != count || room != count || (prefixes_count != 1 && prefixes_count != count)
        || (depths_count != 1 && depths_count != count))
        return wrong(&buffers, "the lengths do not fit");
    double cells[DEEPEST + 1]; /* the width of a cell, by the known depth */
    for (int depth = 0; depth <= DEEPEST; depth++)
        cells[depth] = ldexp(1.0, -32 - depth);
    for (Py_ssize_t i = 0; i < depths_count; i++)
        if (depths[i] > DEEPEST)
            return wrong(&buffers, "a coin has too many known bits");
    Py_ssize_t per_depth = depths_count > 1, per_prefix = prefixes_count > 1;
    for (Py_ssize_t start = 0; start < count; start += CHUNK) {
        Py_ssize_t size = count - start < CHUNK ? count - start : CHUNK;
        double boundary[CHUNK];
        clamp(exponent + start, size, 0x1p-50, vanished, boundary);
        for (Py_ssize_t k = 0; k < size; k++)
            boundary[k] = exp(-boundary[k]);
        for (Py_ssize_t k = 0; k < size; k++) {
            Py_ssize_t i = start + k;
            double cell = cells[depths[i * per_depth]];
            double lowest = words[i] * cell + prefixes[i * per_prefix] * (cell * 0x1p32);
            double distance = boundary[k] - lowest, doubt = boundary[k] * margin + slack * cell;
            int is_head = distance > doubt, is_open = (is_head | (-distance > doubt)) ^ 1;
            out[i] = (uint8_t)(is_head | is_open << 1);
            doubtful += is_open;
        }
    }
    return released(&buffers, PyLong_FromSsize_t(doubtful));
}

static PyMethodDef methods[] = {
    {"maxima", maxima, METH_VARARGS, NULL},       {"scan", scan, METH_VARARGS, NULL},
    {"at_least", at_least, METH_VARARGS, NULL},   {"skips", skips, METH_VARARGS, NULL},
    {"successes", successes, METH_VARARGS, NULL}, {"exponents", exponents, METH_VARARGS, NULL},
    {"gaps", gaps, METH_VARARGS, NULL},           {"octets", octets, METH_VARARGS, NULL},
    {"table", table, METH_VARARGS, NULL},         {"coins", coins, METH_VARARGS, NULL},
    {"joined", joined, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_version(PyObject *module)
{
    return PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_version}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_kernel",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
