/* The sweep of one block of samples, the samples being the lanes of the vectors.

   Included once per type and instruction set, with REAL, INT (an integer of its size), VBYTES (bytes of a
   vector register) and NAME(x) (x with a suffix) defined. An "entry" is one number of each of the LANES
   samples: NV vectors. Everything here is arrays of entries, so nothing depends on the order of lanes. */

typedef REAL NAME(vec) __attribute__((vector_size(VBYTES)));
typedef REAL NAME(loose) __attribute__((vector_size(VBYTES), aligned(sizeof(REAL)), may_alias));
typedef INT NAME(index) __attribute__((vector_size(VBYTES)));
#define vec NAME(vec)
#define V ((long)(VBYTES / sizeof(REAL)))
#define NV ((long)(BLOCK_BYTES / VBYTES))
#define LANES ((long)(BLOCK_BYTES / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))

/* Vectors v[s][e] become v[e][s]: log2(V) rounds, each swapping the off-diagonal halves of 2x2 tiles. */
INLINE void NAME(transpose)(vec v[]) {
#ifdef SHUFFLE
  NAME(index) e;
  for (long i = 0; i < V; i++) e[i] = (INT)i;
#pragma GCC unroll 4
  for (long step = 1; step < V; step *= 2) {
    NAME(index) upper = (e & (INT)step) != 0;
    NAME(index) low = (upper & (e + (INT)(V - step))) | (~upper & e);
    NAME(index) high = (upper & (e + (INT)V)) | (~upper & (e + (INT)step));
#pragma GCC unroll 16
    for (long i = 0; i < V; i++)
      if (!(i & step)) {
        vec a = v[i], b = v[i + step];
        v[i] = SHUFFLE(a, b, low);
        v[i + step] = SHUFFLE(a, b, high);
      }
  }
#else
  for (long i = 0; i < V; i++)
    for (long j = 0; j < i; j++) {
      REAL swap = v[i][j];
      v[i][j] = v[j][i];
      v[j][i] = swap;
    }
#endif
}

/* V consecutive numbers of V samples, from where they lie, into V entries. */
INLINE void NAME(pack_tile)(const Plan *plan, const REAL *const *lane, long from, vec *out) {
  vec tile[V];
  long ahead = from + AHEAD;
  if (ahead >= plan->size) ahead += LANES * plan->step - plan->size; /* what comes next is the next block */
#pragma GCC unroll 16
  for (long s = 0; s < V; s++) {
    __builtin_prefetch(lane[s] + ahead);
    tile[s] = *(const NAME(loose) *)(lane[s] + from);
  }
  NAME(transpose)(tile);
#pragma GCC unroll 16
  for (long s = 0; s < V; s++) out[s * NV] = tile[s];
}

/* p consecutive numbers of each sample into p entries; the last tile overlaps the one before. */
static void NAME(pack)(const Plan *plan, const REAL *const *x, long from, long p, vec *restrict out) {
  for (long h = 0; h < NV; h++) {
    const REAL *const *lane = x + h * V;
    for (long j = 0; j + V <= p; j += V) NAME(pack_tile)(plan, lane, from + j, out + j * NV + h);
    if (p % V && p > V) NAME(pack_tile)(plan, lane, from + p - V, out + (p - V) * NV + h);
    for (long j = 0; p < V && j < p; j++) {
      vec entry = {0};
      for (long s = 0; s < V; s++) entry[s] = lane[s][from + j];
      out[j * NV + h] = entry;
    }
  }
}

/* out[b][c] = sum_j x[b][j] u[j][c], for a few rows b and columns c, all sums in registers. */
INLINE void NAME(dot_tile)(int rows, int cols, const vec *restrict x, long p, const REAL *restrict u, long r,
                           vec *restrict out) {
  vec sum[4][3][NV];
  memset(sum, 0, sizeof sum);
  for (long j = 0; j < p; j++)
    for (int c = 0; c < cols; c++)
      for (int b = 0; b < rows; b++)
        for (long h = 0; h < NV; h++) sum[b][c][h] += x[(b * p + j) * NV + h] * u[j * r + c];
  for (int b = 0; b < rows; b++)
    for (int c = 0; c < cols; c++)
      for (long h = 0; h < NV; h++) out[(b * r + c) * NV + h] = sum[b][c][h];
}

/* out[c][j] += sum_b u[b][c] x[b][j], for a few rows b and columns c; row b of x begins at entry b * ld. */
INLINE void NAME(add_tile)(int rows, int cols, const vec *restrict x, long p, long ld, const REAL *restrict u,
                           long r, vec *restrict out) {
  vec w[4][3];
  for (int b = 0; b < rows; b++)
    for (int c = 0; c < cols; c++) w[b][c] = u[b * r + c] - (vec){0};
  for (long j = 0; j < p * NV; j++) {
    vec sum[3];
    for (int c = 0; c < cols; c++) sum[c] = out[c * p * NV + j];
    for (int b = 0; b < rows; b++)
      for (int c = 0; c < cols; c++) sum[c] += x[b * ld * NV + j] * w[b][c];
    for (int c = 0; c < cols; c++) out[c * p * NV + j] = sum[c];
  }
}

/* Rows and columns cut into tiles whose sizes the compiler knows. */
#define COLUMNS(tile, rows)                             \
  for (long c = 0; c < r; c += 3) switch (r - c) {      \
      case 1: tile(rows, 1); break;                     \
      case 2: tile(rows, 2); break;                     \
      default: tile(rows, 3);                           \
    }

static void NAME(dot)(long rows, const vec *x, long p, const REAL *u, long r, vec *out) {
#define DOT(rows, cols) NAME(dot_tile)(rows, cols, x + b * p * NV, p, u + c, r, out + (b * r + c) * NV)
  long b = 0;
  if (r == 1) for (; b + 4 <= rows; b += 4) COLUMNS(DOT, 4)
  for (; b + 2 <= rows; b += 2) COLUMNS(DOT, 2)
  if (b < rows) COLUMNS(DOT, 1)
}

static void NAME(add)(long rows, const vec *x, long p, long ld, const REAL *u, long r, vec *out) {
#define ADD(rows, cols) NAME(add_tile)(rows, cols, x + b * ld * NV, p, ld, u + b * r + c, r, out + c * p * NV)
  long b = 0;
  for (; b + 4 <= rows; b += 4) COLUMNS(ADD, 4)
  for (; b + 2 <= rows; b += 2) COLUMNS(ADD, 2)
  if (b < rows) COLUMNS(ADD, 1)
}

/* All projections of the sub-tensor of modes k, ..., d-1 that begins at `from` in each sample:

     node = [ core: r_k x core of the next mode | rest: r_k x rest of the next mode | p_k x core of the next ]

   where the last piece is the partial projection that leaves mode k free. A few slices at a time, so that what
   is summed over mode k is loaded and stored less often. */
static void NAME(descend)(const Plan *plan, const REAL *const *x, int k, long from, vec *node) {
  const Mode *mode = plan->modes + k, *next = mode + 1;
  long r = mode->r, inner = next->core, rest = next->rest;
  vec *summed = node + mode->core * NV, *own = summed + r * rest * NV;
  int rows_follow = k + 2 == plan->order; /* a slice is then a row of numbers, its own partial projection */
  long ld = rows_follow ? next->p : inner + rest, ldc = rows_follow ? inner : ld;
  vec *core = (vec *)next->nodes, *tail = rows_follow ? (vec *)plan->rows : core + inner * NV;
  memset(node, 0, (size_t)((mode->core + r * rest) * NV) * sizeof(vec));
  for (long i = 0, count; i < mode->p; i += count) {
    const REAL *u = (const REAL *)mode->u + i * r;
    count = mode->p - i < next->group ? mode->p - i : next->group;
    if (rows_follow) {
      if (plan->partials) core = own + i * inner * NV; /* where they belong: nothing to copy */
      NAME(pack)(plan, x, from + i * ld, count * ld, tail);
      NAME(dot)(count, tail, ld, next->u, inner, core);
    } else {
      for (long b = 0; b < count; b++)
        NAME(descend)(plan, x, k + 1, from + (i + b) * mode->stride, core + b * ld * NV);
    }
    NAME(add)(count, core, inner, ldc, u, r, node);
    if (!plan->partials) continue;
    NAME(add)(count, tail, rest, ld, u, r, summed);
    for (long b = 0; !rows_follow && b < count; b++)
      memcpy(own + (i + b) * inner * NV, core + b * ldc * NV, (size_t)(inner * NV) * sizeof(vec));
  }
}

/* The node of a block of samples into the output arrays, of which entry e of sample s is number e * n + s. */
static void NAME(put)(REAL *out, const vec *entry, long count) {
  if (count == LANES) memcpy(out, entry, BLOCK_BYTES); /* of known size: a few stores, no call */
  else memcpy(out, entry, (size_t)count * sizeof(REAL));
}

static void NAME(write)(const Plan *plan, const vec *node, long first, long count) {
  long n = plan->n;
  for (long e = 0; e < plan->modes->core; e++)
    NAME(put)((REAL *)plan->out[0] + e * n + first, node + e * NV, count);
  if (!plan->partials) return;
  const vec *rest = node + plan->modes->core * NV;
  for (int k = 0; k < plan->order; k++) {
    const Mode *mode = plan->modes + k;
    long r = mode->r, right = mode[1].core, own = r * mode[1].rest;
    REAL *out = (REAL *)plan->out[k + 1] + first;
    const REAL *core = plan->core; /* as left x r x right */
    for (long i = 0; i < mode->p; i++)
      if (core) { /* sum over all modes but k */
        for (long a = 0; a < r; a++) {
          vec sum[NV];
          memset(sum, 0, sizeof sum);
          for (long l = 0; l < mode->n_lefts; l++)
            for (long b = 0; b < right; b++)
              for (long h = 0; h < NV; h++)
                sum[h] += rest[(mode->lefts[l] + own + i * right + b) * NV + h] * core[(l * r + a) * right + b];
          NAME(put)(out + (i * r + a) * n, sum, count);
        }
      } else { /* as left x p x right */
        for (long l = 0; l < mode->n_lefts; l++)
          for (long b = 0; b < right; b++)
            NAME(put)(out + ((l * mode->p + i) * right + b) * n,
                      rest + (mode->lefts[l] + own + i * right + b) * NV, count);
      }
  }
}

static void NAME(run)(const Plan *plan, const void *tensors) {
  const Mode *top = plan->modes;
  long entries = top->core + top->rest;
  const REAL *x[LANES], *scale = plan->scale;
  vec *node = (vec *)top->nodes, *shift = (vec *)plan->shift;
  if (plan->center) {
    for (long s = 0; s < LANES; s++) x[s] = plan->center;
    NAME(descend)(plan, x, 0, 0, shift);
  }
  for (long first = 0; first < plan->n; first += LANES) {
    long count = plan->n - first < LANES ? plan->n - first : LANES;
    for (long s = 0; s < LANES; s++) /* lanes beyond the last sample repeat the first and are not written */
      x[s] = (const REAL *)tensors + (first + (s < count ? s : 0)) * plan->step;
    NAME(descend)(plan, x, 0, 0, node);
    if (plan->center)
      for (long e = 0; e < entries * NV; e++) node[e] -= shift[e];
    if (scale) {
      REAL factor[LANES];
      for (long s = 0; s < LANES; s++) factor[s] = scale[first + (s < count ? s : 0)];
      for (long e = 0; e < entries * NV; e++) node[e] *= *(NAME(loose) *)(factor + e % NV * V);
    }
    NAME(write)(plan, node, first, count);
  }
}
#undef vec
#undef V
#undef NV
#undef LANES
#undef INLINE
#undef COLUMNS
#undef DOT
#undef ADD
