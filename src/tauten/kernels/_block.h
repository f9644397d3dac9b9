/* The sweep of a block of samples, first mode first.

   Included once per type and instruction set, with REAL, INT (an integer of its size), VBYTES (bytes of a
   vector register) and NAME(x) (x with a suffix) defined.

   Level k has tensors of the modes k, ..., d-1, one for each set of ranks l of the modes before. Each is a matrix: p_k
   rows, and a column for each place q of the modes behind. Two things are made of a matrix while it is read once:

     z[c][q] = sum_i u[i][c] x[i][q]    its products with the columns of U_k, matrices of the next level: fewer rows
     g[i][c] = sum_q w[c][q] x[i][q]    the partial projection that leaves mode k free

   The weights w are the products of all factors behind, contracted with the core where there is one, and worked out
   once for all samples. At the first level vectors run along the rows, which are long, of one sample after another.
   What is left after it, much less, is turned so that the samples of a block lie side by side, one in each lane. */

typedef REAL NAME(vec) __attribute__((vector_size(VBYTES)));
typedef REAL NAME(loose) __attribute__((vector_size(VBYTES), aligned(sizeof(REAL)), may_alias));
typedef INT NAME(index) __attribute__((vector_size(VBYTES)));
#define vec NAME(vec)
#define V ((long)(VBYTES / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))

/* A matrix, or some of its rows and columns, and what is made of it; strides in numbers. */
typedef struct {
  long rows, count, tail; /* vectors in a row; where the last one begins that overlaps the one before, or -V */
  const REAL *x;
  long ldx;
  long ahead;             /* from what is read to what is fetched */
  const REAL *after;      /* what is read after the last rows if each is read in parts; else NULL */
  const REAL *u;          /* rows x columns */
  long ldu;
  const REAL *w;          /* columns x count; of vectors at the first level, of numbers for all lanes behind it */
  long ldw;
  REAL *z;                /* columns x count */
  long ldz;
  REAL *g;                /* rows x columns */
  long ldg;
  int fresh;              /* whether g begins here */
} NAME(Matrix);
#define Matrix NAME(Matrix)

INLINE vec NAME(load)(const REAL *from) { return *(const NAME(loose) *)from; }
INLINE void NAME(store)(REAL *to, vec v) { *(NAME(loose) *)to = v; }

INLINE NAME(index) NAME(lanes)(void) {
  NAME(index) e;
  for (long i = 0; i < V; i++) e[i] = (INT)i;
  return e;
}

/* Vectors v[s][e] become v[e][s]: log2(V) rounds, each swapping the off-diagonal halves of 2x2 tiles. */
INLINE void NAME(transpose)(vec v[]) {
#ifdef SHUFFLE
  NAME(index) e = NAME(lanes)();
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

/* The vector of the sums of V vectors. */
INLINE vec NAME(sums)(vec v[]) {
#ifdef SHUFFLE
  NAME(index) e = NAME(lanes)();
#pragma GCC unroll 4
  for (long step = 1; step < V; step *= 2) {
    NAME(index) upper = (e & (INT)step) != 0;
    NAME(index) keep = (upper & (e + (INT)V)) | (~upper & e); /* a blend: cheaper than a second shuffle */
    NAME(index) swap = (upper & (e + (INT)(V - step))) | (~upper & (e + (INT)step));
#pragma GCC unroll 16
    for (long i = 0; i < V; i += 2 * step)
      v[i] = SHUFFLE(v[i], v[i + step], keep) + SHUFFLE(v[i], v[i + step], swap);
  }
  return v[0];
#else
  vec out;
  for (long i = 0; i < V; i++) {
    out[i] = 0;
    for (long e = 0; e < V; e++) out[i] += v[i][e];
  }
  return out;
#endif
}

/* A few rows and columns c, c+1, ... of a matrix: their entries of g stay in registers. */
INLINE void NAME(tile)(int lanes, int rows, int cols, const Matrix *m, long row, long c, const REAL *next) {
  const REAL *x = m->x + row * m->ldx, *w = m->w + c * m->ldw, *u = m->u + row * m->ldu + c;
  REAL *z = m->z + c * m->ldz, *to = m->g + row * m->ldg + c * V;
  vec g[8][3], wide[8][3];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
    for (int k = 0; k < cols; k++) {
      wide[i][k] = u[i * m->ldu + k] - (vec){0};
      g[i][k] = m->fresh ? (vec){0} : *(const vec *)(to + i * m->ldg + k * V);
    }
#define STEP(at, fetch)                                                                                \
  {                                                                                                    \
    vec zk[3], wk[3];                                                                                  \
    for (int k = 0; k < cols; k++) {                                                                   \
      zk[k] = *(vec *)(z + k * m->ldz + j * V);                                                        \
      wk[k] = lanes ? w[k * m->ldw + j] - (vec){0} : *(const vec *)(w + k * m->ldw + j * V);           \
    }                                                                                                  \
    for (int i = 0; i < rows; i++) {                                                                   \
      vec xi = NAME(load)(x + i * m->ldx + (at));                                                      \
      KEEP(xi);                                                                                        \
      if (fetch) __builtin_prefetch(next + i * down);                                                  \
      for (int k = 0; k < cols; k++) zk[k] += xi * wide[i][k], g[i][k] += xi * wk[k];                  \
    }                                                                                                  \
    for (int k = 0; k < cols; k++) *(vec *)(z + k * m->ldz + j * V) = zk[k];                           \
    j++;                                                                                               \
  }
  /* Rows that are read whole are fetched as they lie in memory, one line after the other, and none is left out. */
  long j = 0, per_line = LINE / VBYTES, line = LINE / (long)sizeof(REAL);
  long down = m->after ? m->ldx : line, along = m->after ? line : rows * line;
  const REAL *end = m->after ? next : next + rows * m->ldx;
  for (long lines = m->count / per_line; lines > 0; lines--, next += along) {
    STEP(j * V, !lanes)
    if (per_line > 1) STEP(j * V, 0)
    if (per_line > 2) {
      STEP(j * V, 0)
      STEP(j * V, 0)
    }
  }
  for (; !lanes && next < end; next += line) __builtin_prefetch(next);
  while (per_line > 1 && j < m->count) STEP(j * V, 0)
  if (!lanes && m->tail > -V) STEP(m->tail, 0)
#undef STEP
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
    for (int k = 0; k < cols; k++) *(vec *)(to + i * m->ldg + k * V) = g[i][k];
}

/* Rows of a tile of so many columns: no more than registers hold, with their entries of u, twice over. */
#define MOST_ROWS(cols) (MANY_REGISTERS ? (cols == 1 ? 8 : cols == 2 ? 6 : 4) : cols == 1 ? 5 : 2)

/* The same, where the numbers of rows are not known to the compiler. */
INLINE void NAME(rows)(int lanes, int cols, const Matrix *m, long row, long rows, long c, const REAL *next) {
#define ROWS(count)                                                                              \
  case count:                                                                                    \
    if (count <= MOST_ROWS(cols)) NAME(tile)(lanes, count, cols, m, row, c, next);               \
    break;
  switch (rows) { ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) }
#undef ROWS
}

/* The first columns, for all rows in tiles as even as can be. */
INLINE void NAME(columns)(int lanes, const Matrix *m, long end) {
  long most = end == 1 ? MOST_ROWS(1) : end == 2 || end == 4 ? MOST_ROWS(2) : MOST_ROWS(3);
  long tiles = (m->rows + most - 1) / most;
  for (long t = 0; t < tiles; t++) {
    long row = m->rows * t / tiles, rows = m->rows * (t + 1) / tiles - row;
    const REAL *here = m->x + row * m->ldx, *next = m->after && t + 1 == tiles ? m->after : here + m->ahead;
    for (long k = 0, cols; k < end; k += cols) {
      cols = end - k == 4 ? 2 : end - k < 3 ? end - k : 3; /* no column alone */
      if (cols == 1) NAME(rows)(lanes, 1, m, row, rows, k, next);
      if (cols == 2) NAME(rows)(lanes, 2, m, row, rows, k, next);
      if (cols == 3) NAME(rows)(lanes, 3, m, row, rows, k, next);
      next = here; /* fetched once */
    }
  }
}

/* What is made of a matrix: products with zc columns, sums with gc weights, most of them together. */
INLINE void NAME(both)(int lanes, const Plan *plan, const Matrix *m, long zc, long gc) {
  long common = zc < gc ? zc : gc;
  NAME(columns)(lanes, m, common);
  Matrix alone = *m;
  if (gc < zc) {
    alone.u += common, alone.z += common * m->ldz;
    alone.w = plan->zeros, alone.g = plan->spare, alone.ldw = alone.ldg = 0;
    NAME(columns)(lanes, &alone, zc - common);
  } else if (zc < gc) {
    alone.w += common * m->ldw, alone.g += common * V;
    alone.u = plan->zeros, alone.z = plan->spare, alone.ldu = alone.ldz = 0;
    NAME(columns)(lanes, &alone, gc - common);
  }
}
static void NAME(along)(const Plan *plan, const Matrix *m, long zc, long gc) { NAME(both)(0, plan, m, zc, gc); }
static void NAME(across)(const Plan *plan, const Matrix *m, long zc, long gc) { NAME(both)(1, plan, m, zc, gc); }

/* The first level of one sample: its matrices of the next level, then its partial projection, into flat. */
static void NAME(first)(const Plan *plan, const REAL *x, REAL *flat) {
  const Mode *mode = plan->modes;
  long ld = plan->vectors * V, full = plan->row / V, entries = (mode->p * mode->gc + V - 1) / V * V;
  REAL *g = plan->sums;
  memset(flat, 0, (size_t)(mode->r * ld) * sizeof(REAL));
  for (long j = 0; j < plan->vectors; j += plan->near) {
    int last = j + plan->near >= plan->vectors;
    Matrix m = {.rows = mode->p, .count = last ? full - j : plan->near, .tail = -V, .fresh = !j};
    if (last && full < plan->vectors) m.tail = plan->row - (j + 1) * V;
    m.x = x + j * V, m.ldx = plan->row, m.ahead = plan->ahead;
    if (plan->near < plan->vectors) m.after = last ? x + plan->step : m.x + plan->near * V;
    m.u = mode->u, m.ldu = mode->r, m.w = (const REAL *)mode->w + j * V, m.ldw = ld;
    m.z = flat + j * V, m.ldz = ld, m.g = g, m.ldg = mode->gc * V;
    NAME(along)(plan, &m, mode->r, mode->gc);
  }
  for (long e = 0; e < entries; e += V) {
    vec v[V];
    for (long i = 0; i < V; i++) v[i] = *(vec *)(g + (e + i) * V);
    NAME(store)(flat + mode->r * ld + e, NAME(sums)(v));
  }
}

/* Vectors of V numbers, one from each sample of the block, turned: a vector of samples for each number. */
INLINE void NAME(turn)(const Plan *plan, long place, vec out[]) {
  for (long s = 0; s < V; s++) out[s] = *(const vec *)((const REAL *)plan->flat + s * plan->size_flat + place);
  NAME(transpose)(out);
}

typedef struct {
  long first, lanes; /* samples of the block, and how many there are */
  vec scale;
} NAME(Block);
#define Block NAME(Block)

/* An entry of the samples of a block into its place in an output array; centred and scaled. */
INLINE void NAME(put)(const Plan *plan, const Block *b, int k, long entry, vec v) {
  if (plan->shift) v -= ((const REAL *)plan->shift[k])[entry];
  v *= b->scale;
  REAL *to = (REAL *)plan->out[k] + entry * plan->n + b->first;
  if (b->lanes == V) NAME(store)(to, v);
  else memcpy(to, &v, (size_t)b->lanes * sizeof(REAL));
}

/* What the first level left, turned: its partial projection is done, the matrices go to the next level. */
static void NAME(turn_all)(const Plan *plan, const Block *b) {
  const Mode *mode = plan->modes;
  long nv = plan->vectors, entries = plan->partials ? mode->p * mode->gc : 0;
  vec v[V];
  for (long c = 0; c < mode->r; c++)
    for (long j = 0; j < nv; j++) {
      long at = j + 1 < nv || mode->behind < V ? j * V : mode->behind - V;
      vec *to = (vec *)mode[1].batch + c * mode->behind + at;
      NAME(turn)(plan, (c * nv + j) * V, v);
      for (long s = 0; s < V; s++) to[s] = v[s];
    }
  for (long e = 0; e < entries; e += V) {
    NAME(turn)(plan, mode->r * nv * V + e, v);
    for (long s = 0; s < V && e + s < entries; s++) NAME(put)(plan, b, 1, e + s, v[s]);
  }
}

/* A level between the first and the last. */
static void NAME(level)(const Plan *plan, const Block *b, int k) {
  const Mode *mode = plan->modes + k;
  long q = mode->behind, size = mode->p * mode->gc;
  REAL *g = plan->sums, *z = mode[1].batch;
  memset(z, 0, (size_t)(mode->left * mode->r * q * V) * sizeof(REAL));
  for (long l = 0; l < mode->left; l++) {
    Matrix m = {.rows = mode->p, .count = q, .x = (REAL *)mode->batch + l * mode->p * q * V, .ldx = q * V};
    m.fresh = !plan->core || !l;
    m.u = mode->u, m.ldu = mode->r, m.z = z + l * mode->r * q * V, m.ldz = q * V;
    m.w = (const REAL *)mode->w + (plan->core ? l * mode->r * q : 0), m.ldw = q, m.g = g, m.ldg = mode->gc * V;
    NAME(across)(plan, &m, mode->r, mode->gc);
    if (!plan->partials || (plan->core && l + 1 < mode->left)) continue;
    for (long e = 0; e < size; e++) NAME(put)(plan, b, k + 1, (plan->core ? 0 : l * size) + e, ((vec *)g)[e]);
  }
}

/* The last level: its matrices have one column each. Side by side they are one matrix, with a row for each, and the
   two things that are made of it change parts. */
static void NAME(last)(const Plan *plan, const Block *b, int k) {
  const Mode *mode = plan->modes + k;
  long p = mode->p, r = mode->r, zc = plan->partials && plan->core ? r : 0;
  REAL *g = plan->sums, *z = plan->ends;
  memset(z, 0, (size_t)(zc * p * V) * sizeof(REAL));
  Matrix m = {.rows = mode->left, .count = p, .x = mode->batch, .ldx = p * V, .fresh = 1};
  m.u = plan->core, m.ldu = r, m.w = mode->w, m.ldw = p, m.z = z, m.ldz = p * V, m.g = g, m.ldg = r * V;
  NAME(across)(plan, &m, zc, r);
  for (long e = 0; e < mode->left * r; e++) NAME(put)(plan, b, 0, e, ((vec *)g)[e]);
  for (long c = 0; c < zc; c++)
    for (long i = 0; i < p; i++) NAME(put)(plan, b, k + 1, i * r + c, ((vec *)z)[c * p + i]);
  if (!plan->partials || plan->core) return;
  for (long e = 0; e < mode->left * p; e++) NAME(put)(plan, b, k + 1, e, ((vec *)mode->batch)[e]);
}

/* Rows shorter than a vector with zeros behind them. */
static const REAL *NAME(padded)(const Plan *plan, const REAL *x) {
  const Mode *mode = plan->modes;
  REAL *to = plan->padded;
  for (long i = 0; i < mode->p; i++, x += mode->behind, to += V)
    memcpy(to, x, (size_t)mode->behind * sizeof(REAL));
  return plan->padded;
}

/* The products of all factors behind each mode, from the last to the first: with the core, a row for each set of
   ranks up to that mode, without one for each of those behind. */
static void NAME(weigh)(const Plan *plan) {
  static const REAL one = 1;
  const REAL *from = plan->core ? plan->core : &one;
  for (int k = plan->order - 1; k > 0; k--) {
    const Mode *mode = plan->modes + k;
    const REAL *u = mode->u;
    long q = mode->behind, p = mode->p, r = mode->r, rows = plan->core ? mode->left : mode->right;
    REAL *to = k > 1 ? mode[-1].w : plan->rough;
    for (long l = 0; l < (plan->core ? rows : r * rows); l++)
      for (long i = 0; i < p; i++) {
        REAL *out = to + (l * p + i) * q;
        if (plan->core) {
          memset(out, 0, (size_t)q * sizeof(REAL));
          for (long c = 0; c < r; c++)
            for (long e = 0; e < q; e++) out[e] += u[i * r + c] * from[(l * r + c) * q + e];
        } else
          for (long e = 0; e < q; e++) out[e] = u[i * r + l / rows] * from[l % rows * q + e];
      }
    from = to;
  }
}

/* Everything that is the same for all samples. */
static void NAME(prepare)(const Plan *plan) {
  const Mode *mode = plan->modes, *end = mode + plan->order - 1;
  long behind = mode->behind, row = plan->row, nv = plan->vectors;
  if (plan->partials) NAME(weigh)(plan);
  for (long c = 0; c < mode->gc; c++)
    for (long j = 0; j < nv * V; j++) {
      long q = j / V + 1 < nv ? j : j % V + row - V; /* the last vector overlaps the one before, with no weight there */
      ((REAL *)mode->w)[c * nv * V + j] = q >= j / V * V && q < behind ? ((REAL *)plan->rough)[c * behind + q] : 0;
    }
  for (long c = 0; c < end->r; c++)
    for (long i = 0; i < end->p; i++) ((REAL *)end->w)[c * end->p + i] = ((const REAL *)end->u)[i * end->r + c];
  memset(plan->zeros, 0, (size_t)(plan->longest * V) * sizeof(REAL));
  memset(plan->spare, 0, (size_t)(plan->longest * V) * sizeof(REAL));
  memset(plan->sums, 0, (size_t)(plan->size_sums * V) * sizeof(REAL));
  if (plan->padded) memset(plan->padded, 0, (size_t)(mode->p * V) * sizeof(REAL));
  if (plan->n < V || plan->center) memset(plan->flat, 0, (size_t)(V * plan->size_flat) * sizeof(REAL));
}

static void NAME(blocks)(const Plan *plan, const REAL *x) {
  for (long first = 0; first < plan->n; first += V) {
    Block b = {.first = first, .lanes = plan->n - first < V ? plan->n - first : V, .scale = (vec){0} + 1};
    for (long s = 0; s < b.lanes; s++) {
      const REAL *sample = x + (first + s) * plan->step;
      if (plan->scale) b.scale[s] = ((const REAL *)plan->scale)[first + s];
      NAME(first)(plan, plan->padded ? NAME(padded)(plan, sample) : sample, (REAL *)plan->flat + s * plan->size_flat);
    }
    NAME(turn_all)(plan, &b);
    for (int k = 1; k < plan->order - 1; k++) NAME(level)(plan, &b, k);
    NAME(last)(plan, &b, plan->order - 1);
  }
}

static void NAME(sweep)(const Plan *plan, const void *tensors) {
  NAME(prepare)(plan);
  if (plan->center) {
    Plan one = *plan;
    one.n = 1, one.center = one.scale = NULL, one.out = plan->shift, one.shift = NULL;
    NAME(blocks)(&one, plan->center);
  }
  NAME(blocks)(plan, tensors);
}

/* Sums of squares of the samples, less the centre if there is one: several at a time, as each waits for itself. */
static void NAME(squares)(const Batch *batch, const void *center, void *out) {
  const REAL *x = batch->x, *c = center;
  for (long i = 0; i < batch->n; i++, x += batch->step) {
    vec sums[8] = {(vec){0}};
    REAL total = 0;
    long j = 0;
    for (; j + 8 * V <= batch->size; j += 8 * V)
#pragma GCC unroll 8
      for (long k = 0; k < 8; k++) {
        vec v = NAME(load)(x + j + k * V);
        if (k * VBYTES % LINE == 0) __builtin_prefetch(x + j + k * V + AHEAD / (long)sizeof(REAL));
        if (c) v -= NAME(load)(c + j + k * V);
        sums[k] += v * v;
      }
    for (; j < batch->size; j++) {
      REAL e = c ? x[j] - c[j] : x[j];
      total += e * e;
    }
    for (long k = 1; k < 8; k++) sums[0] += sums[k];
    for (long k = 0; k < V; k++) total += sums[0][k];
    ((REAL *)out)[i] = total;
  }
}
#undef vec
#undef V
#undef INLINE
#undef Matrix
#undef Block
#undef MOST_ROWS
