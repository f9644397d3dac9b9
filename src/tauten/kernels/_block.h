/* The sweep of one sample after another, vectors running along the rows of its last mode.

   Included once per type and instruction set, with REAL, INT (an integer of its size), VBYTES (bytes of a
   vector register) and NAME(x) (x with a suffix) defined.

   Level k takes a batch of tensors with the modes 0, ..., k, as rows of p_k numbers, and makes two things of each
   row while it is in the nearest cache. Its products with the columns of U_k are the batch of level k-1: r_k
   times as many tensors, with one mode less, so much smaller. Added up with the entries of the other factors, rows
   are the partial projection that leaves mode k free; with a core, each row has r_k weights that are worked out once
   for all samples. Level d-1 reads the sample, level 0 ends with the core.

   The last vector of a row overlaps the one before, so that nothing beyond a row is touched: products take its
   repeated numbers with zeros, and sums hold them twice, with the same value. */

typedef REAL NAME(vec) __attribute__((vector_size(VBYTES)));
typedef REAL NAME(loose) __attribute__((vector_size(VBYTES), aligned(sizeof(REAL)), may_alias));
typedef INT NAME(index) __attribute__((vector_size(VBYTES)));
#define vec NAME(vec)
#define V ((long)(VBYTES / sizeof(REAL)))
/* Sums that are under way together: enough of them that none waits for the one before, and no more than there are
   registers. */
#define ROWS (V < 4 ? 4 : V)
#define COLS (3 * ROWS <= (VBYTES == 64 ? 24 : 12) ? 3 : 1)
#define MANY (V < 8 ? 8 : V) /* rows whose products are taken at a time */
#define LANES ((long)(BLOCK_BYTES / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))

typedef struct {
  int k;
  const REAL *x;              /* rows of p numbers, one after the other */
  long p, rows;
  long summed, multiplied;    /* rows that are done */
  REAL *out;                  /* r_k x rows: the batch of the next level */
  const char *ahead;          /* what to fetch while products are taken */
} NAME(Level);
#define Level NAME(Level)

INLINE vec NAME(load)(const REAL *from) { return *(const NAME(loose) *)from; }
INLINE void NAME(store)(REAL *to, vec v) { *(NAME(loose) *)to = v; }
INLINE const char *NAME(fetch)(const char *line) { return __builtin_prefetch(line), line + LINE; }
INLINE long NAME(vectors)(long p) { return (p + V - 1) / V; }
INLINE long NAME(offset)(long j, long nv, long p) { return j + 1 < nv ? j * V : p - V; }

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

/* out[c][b] = sum_j x[b][j] u[j][c] for a few columns c, and a few rows b at a time, all sums in registers. Where
   rows have few vectors the compiler knows how many (short_, else zero), and the columns are loaded once. */
INLINE void NAME(dot_tile)(int short_, int rows, int cols, long batches, const REAL *x, long p, const char *ahead,
                           const vec *u, long r, REAL *restrict out, long ld) {
  long nv = short_ ? short_ : NAME(vectors)(p);
  int kept = cols * (short_ + rows) <= 14 ? short_ : 0; /* registers, of 16 */
  vec column[3][4];
  for (int j = 0; j < kept; j++)
    for (int c = 0; c < cols; c++) column[c][j] = u[j * r + c];
  for (; batches > 0; batches--, x += rows * p, out += rows) {
    vec sum[3][MANY];
    for (int c = 0; c < cols; c++)
      for (int b = 0; b < rows; b++) sum[c][b] = (vec){0};
    const REAL *row = x;
#pragma GCC unroll 16
    for (int b = 0; short_ && b < rows; b++, row += p)
#pragma GCC unroll 4
      for (int j = 0; j < short_; j++) {
        vec xj = NAME(load)(row + NAME(offset)(j, nv, p));
        if (j % 4 == 0) ahead = NAME(fetch)(ahead);
        for (int c = 0; c < cols; c++) sum[c][b] += xj * (kept ? column[c][j] : u[j * r + c]);
      }
    for (long j = 0; !short_ && j < nv; j++) {
      for (int b = 0; b < rows; b += 2 * LINE / VBYTES) ahead = NAME(fetch)(ahead);
      for (int b = 0; b < rows; b++) {
        vec xb = NAME(load)(x + b * p + NAME(offset)(j, nv, p));
        for (int c = 0; c < cols; c++) sum[c][b] += xb * u[j * r + c];
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < cols; c++)
#pragma GCC unroll 8
      for (int b = 0; b < rows; b += V) {
        vec v[V];
#pragma GCC unroll 16
        for (int i = 0; i < V; i++) v[i] = sum[c][b + i];
        NAME(store)(out + c * ld + b, NAME(sums)(v));
      }
  }
}

/* Columns cut into tiles whose sizes the compiler knows. */
#define COLUMNS(r, most, tile)                                              \
  for (long c = 0; c < r; c += most) switch (r - c < most ? r - c : most) { \
      case 1: tile(1); break;                                               \
      case 2: tile(2); break;                                               \
      default: tile(3);                                                     \
    }

/* Products of rows with all columns: of so many at a time, so often. */
INLINE void NAME(dot)(int short_, int rows, const Mode *mode, const Level *at, long first, long batches) {
  int some = rows < ROWS ? rows : ROWS;
#define DOT(cols)                                                                                           \
  NAME(dot_tile)(short_, cols == 1 ? rows : some, cols, cols == 1 ? batches : batches * (rows / some),      \
                 at->x + first * at->p, at->p, at->ahead, (const vec *)mode->columns + c, mode->r,          \
                 at->out + c * at->rows + first, at->rows)
  COLUMNS(mode->r, COLS, DOT)
}

/* The same, for rows of few vectors too. */
#define DOTS(rows, first, batches)                                          \
  switch (NAME(vectors)(at->p)) {                                           \
    case 1: NAME(dot)(1, rows, mode, at, first, batches); break;            \
    case 2: NAME(dot)(2, rows, mode, at, first, batches); break;            \
    case 3: NAME(dot)(3, rows, mode, at, first, batches); break;            \
    case 4: NAME(dot)(4, rows, mode, at, first, batches); break;            \
    default: NAME(dot)(0, rows, mode, at, first, batches);                  \
  }

/* Products of the rows that are there already; of the last ones, some a second time. */
static void NAME(multiply)(const Plan *plan, Level *at, long there) {
  const Mode *mode = plan->modes + at->k;
  long batches = (there - at->multiplied) / MANY;
  if (batches) DOTS(MANY, at->multiplied, batches)
  at->multiplied += batches * MANY;
  if (there < at->rows) return;
  for (long first; (first = at->multiplied) < there; at->multiplied = first + V) {
    if (first > there - V) first = there - V;
    DOTS(V, first, 1)
  }
}

/* out[c][j] (+)= sum_b w[b][c] x[b][j] for a few vectors j, from `from` on, and columns c, all sums in registers. */
INLINE void NAME(add_tile)(int width, int cols, int more, long rows, const REAL *x, long p, const char *ahead,
                           long from, const REAL *w, long r, vec *restrict out) {
  int streams = width * cols <= 6 ? 2 : 1; /* few sums: those of every other row apart */
  vec sum[2][3][4];
  long nv = NAME(vectors)(p), at[4];
  for (int s = 0; s < streams; s++)
    for (int c = 0; c < cols; c++)
      for (int j = 0; j < width; j++) sum[s][c][j] = (vec){0};
  for (int j = 0; j < width; j++) at[j] = NAME(offset)(from + j, nv, p);
#define ROW(s)                                                                                          \
  {                                                                                                     \
    vec wide[3];                                                                                        \
    for (int c = 0; c < cols; c++) wide[c] = w[c] - (vec){0};                                           \
    ahead = NAME(fetch)(ahead);                                                                         \
    for (int j = 0; j < width; j++) {                                                                   \
      vec xj = NAME(load)(x + at[j]);                                                                   \
      for (int c = 0; c < cols; c++) sum[s][c][j] += xj * wide[c];                                      \
    }                                                                                                   \
    x += p, w += r;                                                                                     \
  }
  for (; streams == 2 && rows >= 2; rows -= 2) {
    ROW(0)
    ROW(1)
  }
  for (; rows > 0; rows--) ROW(0)
  for (int c = 0; c < cols; c++)
    for (int j = 0; j < width; j++) {
      vec *to = out + c * nv + from + j, total = streams == 2 ? sum[0][c][j] + sum[1][c][j] : sum[0][c][j];
      *to = more ? *to + total : total;
    }
}

/* The same for all vectors and columns. More is added, or what is there is replaced. */
static void NAME(add)(int more, long rows, const REAL *x, long p, const char *ahead, const REAL *w, long r, vec *out) {
  long nv = NAME(vectors)(p);
#define ADD(width, cols) \
  NAME(add_tile)(width, cols, more, rows, x, p, ahead + j / 4 * rows * LINE, j, w + c, r, out + c * nv)
#define ADD4(cols) ADD(4, cols)
#define ADD3(cols) ADD(3, cols)
#define ADD2(cols) ADD(2, cols)
#define ADD1(cols) ADD(1, cols)
  for (long j = 0; j < nv; j += 4) switch (nv - j) {
      case 1: COLUMNS(r, 3, ADD1) break;
      case 2: COLUMNS(r, 3, ADD2) break;
      case 3: COLUMNS(r, 3, ADD3) break;
      default: COLUMNS(r, 3, ADD4)
    }
}

/* Add up the next rows of the level, some at a time, so that they are still near when their products are taken. */
static void NAME(sum_rows)(const Plan *plan, Level *at, long rows, const REAL *w, long r, vec *out) {
  long most = NEAR_BYTES / (long)sizeof(REAL) / at->p / MANY * MANY;
  if (most < MANY) most = MANY;
  for (long count, done = 0; done < rows; done += count, w += count * r) {
    count = rows - done < most ? rows - done : most;
    const REAL *x = at->x + at->summed * at->p;
    const char *ahead = (const char *)x + AHEAD;
    NAME(add)(done > 0, count, x, at->p, ahead, w, r, out);
    at->ahead = ahead + (NAME(vectors)(at->p) + 3) / 4 * count * LINE; /* what was not fetched by then */
    at->summed += count;
    NAME(multiply)(plan, at, at->summed);
  }
}

/* Sum the next tensor of the level over the modes m, ..., k-1, a few slices at a time. */
static void NAME(climb)(const Plan *plan, Level *at, int m, vec *out) {
  const Mode *mode = plan->modes + m;
  const REAL *u = mode->u, *slices = mode[1].slices;
  long width = plan->modes[at->k].left / mode[1].left * NAME(vectors)(at->p) * V; /* once mode m+1 is summed over */
  if (m + 1 == at->k) {
    NAME(sum_rows)(plan, at, mode->p, u, mode->r, out);
    return;
  }
  for (long i = 0, count; i < mode->p; i += count) {
    count = mode->p - i < GROUP ? mode->p - i : GROUP;
    for (long b = 0; b < count; b++) NAME(climb)(plan, at, m + 1, (vec *)(slices + b * width));
    NAME(add)(i > 0, count, slices, width, (const char *)slices, u + i * mode->r, mode->r, out);
  }
}

/* Rows shorter than a vector with zeros behind them. So few rows that they do not fill a vector of products are
   taken with whatever lies behind: there is room behind a batch, not behind a sample. */
static void NAME(pad)(const Plan *plan, Level *at) {
  long p = at->p, rows = at->rows, width = p < V ? V : p;
  const REAL *row = at->x, *end = row + rows * p;
  REAL *to = plan->padded;
  at->p = width, at->rows = rows < V ? V : rows;
  if (p == width && (rows == at->rows || at->k < plan->order - 1)) return;
  NAME(index) keep = NAME(lanes)() < (INT)(p < V ? p : V);
  at->x = to;
  for (long b = 0; b < rows; b++, row += p, to += width)
    if (p < V && row + V <= end) NAME(store)(to, (vec)((NAME(index))NAME(load)(row) & keep));
    else
      for (long i = 0; i < width; i++) to[i] = i < p ? row[i] : 0;
}

static void NAME(put_row)(REAL *to, const vec *row, long p) {
  if (p < V) memcpy(to, row, (size_t)p * sizeof(REAL));
  else
    for (long j = 0, nv = NAME(vectors)(p); j < nv; j++) NAME(store)(to + NAME(offset)(j, nv, p), row[j]);
}

/* The partial projection that leaves mode k free: with a core r_k rows, else one for all other ranks. */
static void NAME(project)(const Plan *plan, Level *at, long rows, REAL *to) {
  const Mode *mode = plan->modes + at->k;
  long nv = NAME(vectors)(at->p), tensors = mode->right, many = plan->core ? mode->r : mode->left;
  vec *sum = plan->sum;
  for (long t = 0; t < (plan->core ? 1 : tensors); t++) {
    if (plan->core) NAME(sum_rows)(plan, at, rows, mode->weights, mode->r, sum);
    else if (at->k) NAME(climb)(plan, at, 0, sum);
    else /* a tensor is a row: nothing to sum over */
      for (long j = 0; j < nv; j++) sum[j] = NAME(load)(at->x + t * at->p + NAME(offset)(j, nv, at->p));
    for (long l = 0; l < many; l++, to += mode->p) NAME(put_row)(to, sum + l * nv, mode->p);
  }
}

/* A sample with its last mode, a short one, before the others: rows are then long. */
static const REAL *NAME(turn)(const Plan *plan, const REAL *x) {
  long p = plan->modes->p, rows = plan->size / p;
  REAL *to = plan->turn;
  long b = 0;
  for (; (b + V) * p + V <= plan->size; b += V) {
    vec tile[V];
#pragma GCC unroll 16
    for (long s = 0; s < V; s++) tile[s] = NAME(load)(x + (b + s) * p);
    NAME(transpose)(tile);
    for (long i = 0; i < p; i++) NAME(store)(to + i * rows + b, tile[i]);
  }
  for (; b < rows; b++)
    for (long i = 0; i < p; i++) to[i * rows + b] = x[b * p + i];
  return to;
}

/* All projections of one sample, in the order of the plan's places. */
static void NAME(sample)(const Plan *plan, const REAL *x, REAL *to) {
  const REAL *batch = plan->turned ? NAME(turn)(plan, x) : x;
  for (int k = plan->order - 1; k >= 0; k--) {
    const Mode *mode = plan->modes + k;
    long rows = mode->rows;
    Level at = {.k = k, .x = batch, .p = mode->p, .rows = rows, .ahead = (const char *)batch};
    REAL *out = k ? mode->batch : to;
    NAME(pad)(plan, &at);
    at.out = at.rows == rows ? out : plan->few;
    if (plan->partials) NAME(project)(plan, &at, rows, to + mode->place);
    NAME(multiply)(plan, &at, at.rows);
    for (long c = 0; at.rows != rows && c < mode->r; c++)
      for (long b = 0; b < rows; b++) out[c * rows + b] = at.out[c * at.rows + b];
    batch = out;
  }
}

/* A block of samples into the output arrays, where samples lie side by side; centred and scaled. */
static void NAME(write)(const Plan *plan, const REAL *flat, const REAL *shift, long first, long count) {
  long size = plan->entries + V;
  for (long h = 0; h < count; h += V) {
    long lanes = count - h < V ? count - h : V;
    vec scale = (vec){0} + 1;
    for (long s = 0; plan->scale && s < lanes; s++) scale[s] = ((const REAL *)plan->scale)[first + h + s];
    for (long e = 0; e < plan->entries; e += V) {
      vec tile[V];
      for (long s = 0; s < V; s++) tile[s] = NAME(load)(flat + (h + s) * size + e);
      NAME(transpose)(tile);
      for (long s = 0; s < V && e + s < plan->entries; s++) {
        REAL *to = (REAL *)plan->places[e + s] + first + h;
        vec v = (tile[s] - (plan->center ? shift[e + s] : 0)) * scale;
        if (lanes == V) NAME(store)(to, v);
        else memcpy(to, &v, (size_t)lanes * sizeof(REAL));
      }
    }
  }
}

/* The weights of rows: a core with the modes m, ..., k multiplied by the factors of all but the last of them. */
static void NAME(expand)(const Plan *plan, int m, int k, const REAL *core, REAL *to) {
  const Mode *mode = plan->modes + m;
  long width = plan->modes[k].r, height = width;
  if (m == k) {
    memcpy(to, core, (size_t)width * sizeof(REAL));
    return;
  }
  for (int j = m + 1; j < k; j++) width *= plan->modes[j].r, height *= plan->modes[j].p;
  for (long i = 0; i < mode->p; i++) {
    REAL *slice = mode[1].slices;
    for (long e = 0; e < width; e++) {
      slice[e] = 0;
      for (long a = 0; a < mode->r; a++) slice[e] += ((const REAL *)mode->u)[i * mode->r + a] * core[a * width + e];
    }
    NAME(expand)(plan, m + 1, k, slice, to + i * height);
  }
}

/* Columns of the factors as products take them, and the core as weights of the partial projections. */
static void NAME(prepare)(const Plan *plan) {
  for (int k = 0; k < plan->order; k++) {
    const Mode *mode = plan->modes + k;
    long p = mode->p < V ? V : mode->p, r = mode->r;
    vec *columns = mode->columns;
    for (long j = 0, nv = NAME(vectors)(p); j < nv; j++)
      for (long c = 0; c < r; c++)
        for (long e = 0; e < V; e++) {
          long i = NAME(offset)(j, nv, p) + e;
          columns[j * r + c][e] = i >= j * V && i < mode->p ? ((const REAL *)mode->u)[i * r + c] : 0;
        }
    for (long t = 0; plan->core && t < mode->right; t++) {
      REAL *core = plan->modes->slices;
      for (long l = 0; l < mode->left * r; l++) core[l] = ((const REAL *)plan->core)[l * mode->right + t];
      NAME(expand)(plan, 0, k, core, (REAL *)mode->weights + t * mode->rows / mode->right * r);
    }
  }
}

static void NAME(run)(const Plan *plan, const void *tensors) {
  long size = plan->entries + V;
  REAL *flat = plan->flat, *shift = flat + LANES * size;
  NAME(prepare)(plan);
  if (plan->center) NAME(sample)(plan, plan->center, shift);
  for (long first = 0; first < plan->n; first += LANES) {
    long count = plan->n - first < LANES ? plan->n - first : LANES;
    for (long s = 0; s < count; s++)
      NAME(sample)(plan, (const REAL *)tensors + (first + s) * plan->step, flat + s * size);
    NAME(write)(plan, flat, shift, first, count);
  }
}
#undef vec
#undef V
#undef MANY
#undef ROWS
#undef COLS
#undef LANES
#undef INLINE
#undef Level
#undef COLUMNS
#undef DOT
#undef DOTS
#undef ADD
#undef ADD1
#undef ADD2
#undef ADD3
#undef ADD4
#undef ROW
