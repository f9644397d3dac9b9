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

/* A matrix, or some of its rows, and what is made of it; strides in numbers. */
typedef struct {
  long rows;
  long back, last;        /* see place: the first and the last of them may overlap their neighbours */
  const REAL *x;
  long ldx;
  const REAL *next;       /* what is fetched meanwhile: line by line, or along rows as x is read */
  long along;
  const REAL *u;          /* rows x columns */
  long ldu;
  const REAL *w;          /* columns x vectors of a row at the first level, columns x numbers for all lanes behind it */
  long ldw;
  REAL *z;                /* columns x vectors of a row */
  long ldz;
  REAL *g;                /* rows x columns */
  long ldg;
  int begun;              /* whether z holds the products of rows before */
} NAME(Matrix);
#define Matrix NAME(Matrix)

INLINE vec NAME(load)(const REAL *from) { return *(const NAME(loose) *)from; }
INLINE void NAME(store)(REAL *to, vec v) { *(NAME(loose) *)to = v; }

/* Where a vector of a row begins: not all of them at multiples of V, and none beyond where the last one does. */
INLINE long NAME(place)(long j, long back, long last) {
  long at = j * V - back;
  return at < 0 ? 0 : at < last ? at : last;
}

/* A line of memory into a cache: the second, as the first takes few at a time; the first, where vectors are as long as
   lines. If `again`, twice, first when it is so many bytes further off: the processor drops what it has no room for. */
#define CACHE (VBYTES == LINE ? 3 : 2)
INLINE void NAME(fetch)(const REAL *x, long again) {
  __builtin_prefetch(x, 0, CACHE);
  if (again) __builtin_prefetch((const char *)x + again, 0, CACHE);
}

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

/* Columns that are made of a strip at a time, and its vectors with so many of them: no more than registers hold, of z,
   w and x. Along rows, with one or two columns of vectors of 32 bytes, fewer: wider strips lost time where X is not in
   cache. A strip is as wide as its first columns let it be; those that are left must not ask for a narrower one, and do
   not: at_once leaves no one or two behind three. */
#define MOST_AT_ONCE(lanes) (MANY_REGISTERS && !lanes ? 5 : 3)
#define WIDEST(lanes, cols) \
  (MANY_REGISTERS && (lanes || VBYTES != 32 || cols > 2) ? (cols < 2 ? 8 : cols < 4 ? 4 : 2) : cols < 2 ? 4 : 2)

/* Columns c, c+1, ... of z and g from strips of a matrix, a few vectors wide, from vector j on: down all rows, so that of
   z and w all that a strip meets stays in registers. */
INLINE void NAME(strips)(int lanes, int parts, int cols, int width, const Matrix *m, long c, long j, long end, int fetch) {
  const REAL *wc = m->w + c * m->ldw, *uc = m->u + c;
  REAL *zc = m->z + c * m->ldz, *gc = m->g + c * V;
  long rows = m->rows, ldx = m->ldx, ldu = m->ldu, ldg = m->ldg;
  long down = fetch && !m->along ? width * V : ldx, again = fetch && !m->along ? reading.again : 0;
  for (; j < end; j += width) {
    const REAL *x = m->x + NAME(place)(j, m->back, m->last), *w = wc + (lanes ? j : j * V), *u = uc;
    const REAL *next = fetch ? m->next + j * V * (m->along ? 1 : rows) : x;
    REAL *z = zc + j * V, *g = gc;
    vec zs[8][5], ws[8][5], xs[8];
#pragma GCC unroll 8
    for (int v = 0; v < width; v++)
#pragma GCC unroll 5
      for (int k = 0; k < cols; k++) {
        if (parts & PRODUCTS) zs[v][k] = m->begun ? *(vec *)(z + k * m->ldz + v * V) : (vec){0};
        if (parts & SUMS) ws[v][k] = lanes ? w[k * m->ldw + v] - (vec){0} : *(const vec *)(w + k * m->ldw + v * V);
      }
#pragma GCC unroll 2
    for (long i = 0; i < rows; i++, x += ldx, u += ldu, g += ldg, next += down) {
#pragma GCC unroll 8
      for (int v = 0; v < width; v++) {
        xs[v] = NAME(load)(x + v * V);
        KEEP(xs[v]);
        if (!lanes && v * VBYTES % LINE == 0) NAME(fetch)(next + v * V, again);
      }
#pragma GCC unroll 5
      for (int k = 0; k < cols; k++) {
        if (parts & PRODUCTS) {
          vec uk = u[k] - (vec){0};
#pragma GCC unroll 8
          for (int v = 0; v < width; v++) zs[v][k] += xs[v] * uk;
        }
        if (parts & SUMS) {
          vec gk = *(const vec *)(g + k * V);
#pragma GCC unroll 8
          for (int v = 0; v < width; v++) gk += xs[v] * ws[v][k];
          *(vec *)(g + k * V) = gk;
        }
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < width; v++)
#pragma GCC unroll 5
      for (int k = 0; k < cols; k++)
        if (parts & PRODUCTS) *(vec *)(z + k * m->ldz + v * V) = zs[v][k];
  }
}

/* A function for each kind of strip: which ones a matrix needs is decided once for all samples. */
#define EACH_WIDTH(DO, lanes, parts)                                                                    \
  DO(lanes, parts, 1, 1) DO(lanes, parts, 1, 2) DO(lanes, parts, 1, 3) DO(lanes, parts, 1, 4)           \
  DO(lanes, parts, 1, 5) DO(lanes, parts, 1, 6) DO(lanes, parts, 1, 7) DO(lanes, parts, 1, 8)           \
  DO(lanes, parts, 2, 1) DO(lanes, parts, 2, 2) DO(lanes, parts, 2, 3) DO(lanes, parts, 2, 4)           \
  DO(lanes, parts, 3, 1) DO(lanes, parts, 3, 2) DO(lanes, parts, 3, 3) DO(lanes, parts, 3, 4)           \
  DO(lanes, parts, 4, 1) DO(lanes, parts, 4, 2) DO(lanes, parts, 5, 1) DO(lanes, parts, 5, 2)
#define EACH_STRIP(DO)                                       \
  EACH_WIDTH(DO, 0, 1) EACH_WIDTH(DO, 0, 2) EACH_WIDTH(DO, 0, 3) \
  EACH_WIDTH(DO, 1, 1) EACH_WIDTH(DO, 1, 2) EACH_WIDTH(DO, 1, 3)
#define FIT(lanes, cols, width) (cols <= MOST_AT_ONCE(lanes) && width <= WIDEST(lanes, cols))
#define DEFINE(lanes, parts, cols, width)                                                                        \
  static void NAME(strip##lanes##parts##cols##width)(const void *m, long c, long j, long end, int fetch) {       \
    if (FIT(lanes, cols, width)) /* of others there is nothing to compile */                                     \
      NAME(strips)(lanes, parts, cols, width, m, c, j, end, fetch);                                              \
  }
#define LOOK_UP(lanes, parts, cols, width) \
  case KIND(lanes, parts, cols, width): \
    return FIT(lanes, cols, width) ? NAME(strip##lanes##parts##cols##width) : NULL;
#define KIND(lanes, parts, cols, width) ((((lanes)*4 + (parts)) * 8 + (cols)) * 16 + (width)) /* a number for each */
EACH_STRIP(DEFINE)
static MakeStrips *NAME(strip_of)(long kind) {
  switch (kind) { EACH_STRIP(LOOK_UP) }
  return NULL;
}

/* How many of so many columns are made at a time: about as many each time, so that none is alone. */
INLINE long NAME(at_once)(int lanes, long columns) {
  long times = (columns + MOST_AT_ONCE(lanes) - 1) / MOST_AT_ONCE(lanes);
  return times > 1 ? (columns + times - 1) / times : columns;
}

/* The width of a strip, or less, if so many columns ask for that. */
INLINE long NAME(narrower)(int lanes, long columns, long width) {
  long cols = NAME(at_once)(lanes, columns), most = WIDEST(lanes, cols);
  return width < most ? width : most;
}

/* Pieces of strips of a width: columns from the first on, some at a time. */
static Piece *NAME(pieces)(Piece *to, int lanes, int parts, long width, long first, long end) {
  for (long c = first, cols; c < end; c += cols) {
    cols = NAME(at_once)(lanes, end - c);
    *to++ = (Piece){NAME(strip_of)(KIND(lanes, parts, cols, width)), c};
  }
  return to;
}

/* How a matrix of so many vectors in a row is cut, for products with zc columns and sums with gc weights, most of them
   together. The first and the last vector are alone if they overlap their neighbours. For `few` see Reading:
   of vectors as long as lines, two and three columns have one width, and no others. */
static void NAME(plan_cut)(Cut *cut, int lanes, long few, long count, long back, long last, long zc, long gc) {
  long common = zc < gc ? zc : gc, most = NAME(narrower)(lanes, common, WIDEST(lanes, 1));
  most = NAME(narrower)(lanes, zc + gc - 2 * common, most); /* those that are only products, or only sums */
  if (few && most == WIDEST(lanes, 2)) most = few;
  long whole = count - (count * V - back > last + V); /* without the last one, if it overlaps */
  Piece *to = cut->pieces;
  cut->stretches = 0;
  for (long j = 0; j < count;) {
    long left = j < whole ? whole - j : 1, width = !j && back ? 1 : left < most ? left : most;
    long strips = !j && back ? 1 : left / width;
    Stretch *s = cut->stretch + cut->stretches++;
    *s = (Stretch){.j = j, .end = j + strips * width, .width = width, .pieces = to};
    to = NAME(pieces)(to, lanes, PRODUCTS | SUMS, width, 0, common);
    to = NAME(pieces)(to, lanes, PRODUCTS, width, common, zc);
    to = NAME(pieces)(to, lanes, SUMS, width, common, gc);
    s->beyond = to, j = s->end;
  }
}

/* What is made of a matrix; the first piece of each strip fetches, once. */
static void NAME(make)(const Matrix *m, const Cut *cut) {
  for (const Stretch *s = cut->stretch; s < cut->stretch + cut->stretches; s++) {
    long step = s->beyond - s->pieces > 1 ? s->width : s->end - s->j; /* all that is made of a strip at once */
    for (long j = s->j; j < s->end; j += step)
      for (const Piece *p = s->pieces; p < s->beyond; p++) p->make(m, p->c, j, j + step, p == s->pieces);
  }
}

/* Rows shorter than a vector with zeros behind them. */
static const REAL *NAME(padded)(const Plan *plan, const REAL *x) {
  const Mode *mode = plan->modes;
  REAL *to = plan->padded;
  for (long i = 0; i < mode->p; i++, x += mode->behind, to += V)
    memcpy(to, x, (size_t)mode->behind * sizeof(REAL));
  return plan->padded;
}

/* The first level of one sample: its matrices of the next level, then its partial projection, into flat. */
static void NAME(first)(const Plan *plan, const REAL *x, REAL *flat) {
  const Mode *mode = plan->modes;
  long ld = plan->vectors * V, entries = (mode->p * mode->gc + V - 1) / V * V;
  const REAL *from = plan->padded ? NAME(padded)(plan, x) : x;
  REAL *g = plan->sums;
  memset(g, 0, (size_t)(mode->p * mode->gc * V) * sizeof(REAL));
  for (long i = 0; !i || i < mode->p; i += plan->rows) { /* of no rows, products are zero */
    long rows = mode->p - i < plan->rows ? mode->p - i : plan->rows, last = i + rows == mode->p;
    Matrix m = {.rows = rows, .back = plan->back, .last = plan->row - V, .begun = i > 0};
    m.x = from + i * plan->row, m.ldx = plan->row, m.along = plan->along;
    m.next = m.along ? m.x + m.along : last ? x + plan->skip : m.x + rows * plan->row;
    m.u = (const REAL *)mode->u + i * mode->r, m.ldu = mode->r, m.w = mode->w, m.ldw = ld;
    m.z = flat, m.ldz = ld, m.g = g + i * mode->gc * V, m.ldg = mode->gc * V;
    NAME(make)(&m, &mode->cut);
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
      vec *to = (vec *)mode[1].batch + c * mode->behind + NAME(place)(j, plan->back, plan->row - V);
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
  for (long l = 0; l < mode->left; l++) {
    Matrix m = {.rows = mode->p, .last = (q - 1) * V, .ldx = q * V};
    m.x = (REAL *)mode->batch + l * mode->p * q * V;
    if (!plan->core || !l) memset(g, 0, (size_t)(size * V) * sizeof(REAL));
    m.u = mode->u, m.ldu = mode->r, m.z = z + l * mode->r * q * V, m.ldz = q * V;
    m.w = (const REAL *)mode->w + (plan->core ? l * mode->r * q : 0), m.ldw = q, m.g = g, m.ldg = mode->gc * V;
    NAME(make)(&m, &mode->cut);
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
  memset(g, 0, (size_t)(mode->left * r * V) * sizeof(REAL));
  Matrix m = {.rows = mode->left, .last = (p - 1) * V, .x = mode->batch, .ldx = p * V};
  m.u = plan->core, m.ldu = r, m.w = mode->w, m.ldw = p, m.z = z, m.ldz = p * V, m.g = g, m.ldg = r * V;
  NAME(make)(&m, &mode->cut);
  for (long e = 0; e < mode->left * r; e++) NAME(put)(plan, b, 0, e, ((vec *)g)[e]);
  for (long c = 0; c < zc; c++)
    for (long i = 0; i < p; i++) NAME(put)(plan, b, k + 1, i * r + c, ((vec *)z)[c * p + i]);
  if (!plan->partials || plan->core) return;
  for (long e = 0; e < mode->left * p; e++) NAME(put)(plan, b, k + 1, e, ((vec *)mode->batch)[e]);
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
static void NAME(prepare)(Plan *plan) {
  const Mode *mode = plan->modes, *end = mode + plan->order - 1;
  long behind = mode->behind, row = plan->row, nv = plan->vectors;
  long zc = plan->partials && plan->core ? end->r : 0;
  if (plan->partials) NAME(weigh)(plan);
  int small = plan->rows * row * (long)sizeof(REAL) <= NEAR_BYTES; /* rows of so few bytes stay in the first cache */
  NAME(plan_cut)(&plan->modes[0].cut, 0, small ? 0 : reading.few, nv, plan->back, row - V, mode->r, mode->gc);
  for (Mode *m = plan->modes + 1; m < end; m++) NAME(plan_cut)(&m->cut, 1, 0, m->behind, 0, (m->behind - 1) * V, m->r, m->gc);
  NAME(plan_cut)(&plan->modes[plan->order - 1].cut, 1, 0, end->p, 0, (end->p - 1) * V, zc, end->r);
  for (long j = 0, from = 0, at; j < nv; j++, from = at + V) {
    at = NAME(place)(j, plan->back, row - V); /* no weight for what the vector before has */
    for (long c = 0; c < mode->gc; c++)
      for (long q = at; q < at + V; q++)
        ((REAL *)mode->w)[(c * nv + j) * V + q - at] = q >= from && q < behind ? ((REAL *)plan->rough)[c * behind + q] : 0;
  }
  for (long c = 0; c < end->r; c++)
    for (long i = 0; i < end->p; i++) ((REAL *)end->w)[c * end->p + i] = ((const REAL *)end->u)[i * end->r + c];
  memset(plan->sums, 0, (size_t)(plan->size_sums * V) * sizeof(REAL));
  if (plan->padded) memset(plan->padded, 0, (size_t)(mode->p * V) * sizeof(REAL));
  if (plan->n < V || plan->center) memset(plan->flat, 0, (size_t)(V * plan->size_flat) * sizeof(REAL));
}

/* Add the samples of a block, which are in cache, times their scores to the total. */
static void NAME(add_up)(const Plan *plan, const Block *b, const REAL *x) {
  const REAL *scores = (const REAL *)plan->scores + b->first;
  REAL *total = plan->total;
  long j = 0;
  for (; j + V <= plan->size; j += V) {
    vec sum = NAME(load)(total + j);
    for (long s = 0; s < b->lanes; s++) sum += scores[s] * NAME(load)(x + s * plan->step + j);
    NAME(store)(total + j, sum);
  }
  for (; j < plan->size; j++)
    for (long s = 0; s < b->lanes; s++) total[j] += scores[s] * x[s * plan->step + j];
}

static void NAME(blocks)(const Plan *plan, const REAL *x) {
  for (long first = 0; first < plan->n; first += V) {
    Block b = {.first = first, .lanes = plan->n - first < V ? plan->n - first : V, .scale = (vec){0} + 1};
    for (long s = 0; s < b.lanes; s++) {
      const REAL *sample = x + (first + s) * plan->step;
      if (plan->scale) b.scale[s] = ((const REAL *)plan->scale)[first + s];
      NAME(first)(plan, sample, (REAL *)plan->flat + s * plan->size_flat);
    }
    NAME(turn_all)(plan, &b);
    for (int k = 1; k < plan->order - 1; k++) NAME(level)(plan, &b, k);
    NAME(last)(plan, &b, plan->order - 1);
    if (plan->scores) NAME(add_up)(plan, &b, x + first * plan->step);
  }
}

static void NAME(sweep)(Plan *plan, const void *tensors) {
  NAME(prepare)(plan);
  if (plan->center) {
    Plan one = *plan;
    one.n = 1, one.center = one.scale = one.scores = NULL, one.out = plan->shift, one.shift = NULL;
    NAME(blocks)(&one, plan->center);
  }
  NAME(blocks)(plan, tensors);
}

#if VBYTES < LINE /* vectors as long as lines took longer, as memory is all that this waits for */
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
#endif
#undef vec
#undef V
#undef INLINE
#undef Matrix
#undef Block
#undef WIDEST
#undef MOST_AT_ONCE
#undef EACH_WIDTH
#undef EACH_STRIP
#undef FIT
#undef DEFINE
#undef LOOK_UP
#undef KIND
#undef CACHE
