/* All partial projections of a batch of tensors, and a sum of them, in one read; their norms: the compiled twin of kernels/plain.py.

   How, is said in _block.h. The code for each instruction set is compiled with the
   package and chosen when it is loaded, so one build runs on every machine. */

#define Py_LIMITED_API 0x030b0000 /* one build for every Python from 3.11 on */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 64   /* no vector is longer: eight samples in double precision, 16 in single */
#define LINE 64          /* bytes of memory that come together */
#define MAX_ORDER 16
#define NEAR_BYTES 24576 /* of a strip down some rows and what is made of it, which stays in the first cache */
#define FAR_BYTES 262144 /* of these rows, while the next ones are fetched: both stay in the second cache */
#define AHEAD 16384      /* bytes fetched before they are needed: memory answers late */
#define ALIGNED 32       /* vectors in a row from which on it pays to take them as lines of memory lie */
#define STRETCHES 4      /* the first vector of a row, whole strips, what is left, the last vector */
#define PRODUCTS 1       /* what is made of a matrix: see _block.h */
#define SUMS 2

/* What is made of a strip of a matrix, see _block.h, for the columns from one on, and where the strip is. */
typedef void MakeStrips(const void *matrix, long column, long from, long to, int fetch);
typedef struct {
  MakeStrips *make;
  long c;
} Piece;

/* Strips of one width, from a vector on, and what is made of each. */
typedef struct {
  long j, end, width;
  const Piece *pieces, *beyond;
} Stretch;

typedef struct {
  Stretch stretch[STRETCHES];
  int stretches;
  Piece *pieces; /* of all of them */
} Cut;

typedef struct {
  long p, r;      /* dimension and rank */
  long left;      /* ranks of the modes before, multiplied */
  long right;     /* and of those behind */
  long behind;    /* dimensions of the modes behind, multiplied */
  long gc;        /* columns of its partial projection: r with a core, else right; none if none is wanted */
  const void *u;  /* factor, p x r */
  void *w;        /* weights of the partial projection, see _block.h; of the last mode its factor, r x p */
  void *batch;    /* behind the first mode: tensors of this level, left x p x behind vectors */
  Cut cut;        /* how the matrices of this level are cut */
} Mode;

typedef struct {
  const void *x;
  long n;          /* samples */
  long size, step; /* numbers of a sample, and from one to the next */
  int single;      /* whether they are of single precision */
} Batch;

typedef struct {
  int order, partials;
  long n, size, step;   /* of the batch */
  long row, vectors;    /* numbers and vectors in a row of the first level; one vector at least */
  long back;            /* numbers that its vectors begin before multiples of their length: see place */
  long rows;            /* rows of it that are taken at a time */
  long along;           /* how far ahead they are fetched as they are read; if zero, those after them, in order, ... */
  long skip;            /* ... and after a sample one that is so many numbers on */
  long size_flat;       /* numbers that the first level leaves of a sample */
  long size_sums;       /* vectors of the largest partial projection, and a few more */
  const void *core;     /* core tensor to contract the partial projections with, or NULL */
  const void *center;   /* tensor subtracted from each sample, or NULL */
  const void *scale;    /* factor of each sample, or NULL */
  const void *scores;   /* what each sample is summed up with, or NULL, ... */
  void *total;          /* ... and where to: a tensor */
  void **out;           /* where the core's part begins, then that of each mode: entries x samples */
  void **shift;         /* the same for the centre, or NULL */
  void *flat;           /* room for what the first level leaves of a block of samples */
  void *sums, *ends;    /* room for partial projections, as vectors */
  void *rough;          /* room for the weights of the first level, one row after the other */
  void *padded;         /* room for a sample whose rows are shorter than a vector, or NULL */
  Mode modes[MAX_ORDER];
} Plan;

/* How X is read where it is not in cache, as was best of what was tried: on processors of AMD that do vectors of 64 bytes
   by halves, on one of Intel, and on AMD's that do them whole. */
typedef struct {
  long bytes, along, rows; /* longer rows are fetched as they are read, so many bytes ahead, so many rows at a time; ... */
  long ahead;              /* ... others at least so many bytes before they are needed, as memory answers late, ... */
  long again;              /* ... and when they are so many more off; if zero, only once */
  long few;                /* vectors of a strip of two or three columns; if zero, as many as registers hold */
} Reading;
static Reading reading = {12288, 1024, LONG_MAX, AHEAD, 0, 0};

#if defined(__GNUC__) && !defined(__clang__)
#define SHUFFLE __builtin_shuffle
#endif

#if defined(__x86_64__)
#define KEEP(vector) __asm__("" : "+v"(vector)) /* in a register: else it is loaded once for each use */
#else
#define KEEP(vector)
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NAME(x) JOIN(x, ISA, REAL)

#define ISA base
#define VBYTES 16
#ifdef __aarch64__
#define MANY_REGISTERS 1
#else
#define MANY_REGISTERS 0
#endif
#include "_types.h"
#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#define MANY_ISAS
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define ISA avx2
#define VBYTES 32
#include "_types.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#undef MANY_REGISTERS
#define MANY_REGISTERS 1
#define ISA avx512vl
#define VBYTES 32
#include "_types.h"
#define ISA avx512
#define VBYTES 64
#include "_types.h"
#pragma GCC pop_options
#endif

typedef void Sweep(Plan *, const void *);
typedef void Squares(const Batch *, const void *, void *);

typedef struct {
  const char *name;
  long width; /* bytes of a vector */
  Sweep *sweeps[2]; /* in double and in single precision */
  Squares *squares[2];
} Isa;
#define WITH(name, width, norms)                                                                                   \
  (Isa) {                                                                                                          \
    #name, width, {sweep_##name##_double, sweep_##name##_float}, {squares_##norms##_double, squares_##norms##_float} \
  }
static Isa isa;

static void choose_isa(void) {
  isa = WITH(base, 16, base);
#ifdef MANY_ISAS
  __builtin_cpu_init();
  int intel = __builtin_cpu_is("intel"), whole = __builtin_cpu_supports("avx512vp2intersect"); /* Zen 5, as far as known */
  if (__builtin_cpu_supports("x86-64-v4")) isa = intel || whole ? WITH(avx512, 64, avx512vl) : WITH(avx512vl, 32, avx512vl);
  else if (__builtin_cpu_supports("x86-64-v3")) isa = WITH(avx2, 32, avx2);
  if (intel) reading = (Reading){2048, 512, 25, AHEAD, 0, 0};
  else if (whole) reading = (Reading){131072, 1024, LONG_MAX, 8192, 2048, 1};
#endif
}

static long larger(long a, long b) { return a > b ? a : b; }

/* A piece of the memory, or while that is measured only its size. */
static void *room(char *memory, size_t *used, long numbers, long itemsize) {
  void *found = memory ? memory + *used : NULL;
  *used += ((size_t)(numbers * itemsize) + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
  return found;
}

/* Lay out room to work in; returns its size in bytes. */
static size_t lay_out(Plan *plan, char *memory, long itemsize) {
  size_t used = 0;
  long v = isa.width / itemsize, sums = 0, ranks = 1;
  Mode *first = plan->modes, *last = first + plan->order - 1;
  for (Mode *m = first; m <= last; m++) {
    long columns = m == first ? plan->vectors * v : m->behind;
    ranks *= m->r, sums = larger(sums, m->p * m->gc);
    m->w = room(memory, &used, m == last ? m->p * m->r : (plan->core ? ranks : m->gc) * columns, itemsize);
    m->cut.pieces = room(memory, &used, STRETCHES * larger(m->r, m->gc), sizeof(Piece));
    if (m > first) m->batch = room(memory, &used, (m->left * m->p * m->behind + v) * v, itemsize);
  }
  plan->size_sums = larger(sums, ranks) + v;
  plan->sums = room(memory, &used, plan->size_sums * v, itemsize);
  plan->ends = room(memory, &used, last->p * last->r * v, itemsize);
  plan->rough = room(memory, &used, first->gc * first->behind, itemsize);
  plan->padded = first->behind < v ? room(memory, &used, first->p * v, itemsize) : NULL;
  plan->flat = room(memory, &used, v * plan->size_flat, itemsize);
  if (plan->shift) plan->shift[0] = room(memory, &used, ranks, itemsize);
  for (int k = 1; plan->shift && k <= plan->order; k++) {
    const Mode *m = first + k - 1;
    plan->shift[k] = room(memory, &used, m->p * (plan->core ? m->r : m->left * m->right), itemsize);
  }
  return used;
}

/* Sizes of all levels. */
static void measure(Plan *plan, const void *x, long itemsize) {
  long behind = 1, v = isa.width / itemsize;
  Mode *first = plan->modes, *last = first + plan->order - 1;
  for (Mode *m = last; m >= first; m--) {
    m->behind = behind, behind *= m->p;
    m->gc = !plan->partials ? 0 : plan->core ? m->r : m->right;
  }
  plan->row = larger(first->behind, v);
  int alike = plan->row >= ALIGNED * v && plan->row % v == 0 && plan->step % v == 0; /* all rows, to lines */
  plan->back = alike ? (long)((uintptr_t)x / (size_t)itemsize) % v : 0;
  plan->vectors = (plan->row + plan->back + v - 1) / v;
  long near = NEAR_BYTES / (first->gc * isa.width + 2 * LINE), far = FAR_BYTES / (plan->row * itemsize);
  plan->along = plan->row * itemsize > reading.bytes ? reading.along / itemsize : 0;
  long fetched = plan->along ? reading.rows : far;
  long most = larger(1, near < fetched ? near : fetched), parts = larger(1, (first->p + most - 1) / most);
  plan->rows = larger(1, (first->p + parts - 1) / parts);
  plan->skip = plan->step * (reading.ahead / (plan->rows * plan->row * itemsize) + 1);
  plan->size_flat = (first->r * plan->vectors + (first->p * first->gc + v - 1) / v) * v;
}

static void *plan_memory(Plan *plan, const void *x, long itemsize) {
  measure(plan, x, itemsize);
  char *memory = malloc(lay_out(plan, NULL, itemsize) + BLOCK_BYTES);
  if (!memory) return NULL;
  lay_out(plan, memory + BLOCK_BYTES - (uintptr_t)memory % BLOCK_BYTES, itemsize);
  return memory;
}

/* Arguments and their buffers, all released together. */
typedef struct {
  Py_buffer views[MAX_ORDER + 7]; /* samples, factors, core, centre, scale, scores, what is made */
  int used;
} Views;

static void *view(Views *views, PyObject *array, const char *format, long size, int writable) {
  Py_buffer *v = views->views + views->used;
  if (PyObject_GetBuffer(array, v, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
    return NULL;
  views->used++;
  if (strcmp(v->format, format) || v->len != size * v->itemsize) {
    PyErr_SetString(PyExc_ValueError, "sweep: arrays must be contiguous, of one type and of matching sizes");
    return NULL;
  }
  return v->buf;
}

static int view_optional(Views *views, PyObject *array, const char *format, long size, const void **out) {
  if (array == Py_None) return *out = NULL, 1;
  return (*out = view(views, array, format, size, 0)) != NULL;
}

/* A batch of tensors, as it lies in memory: samples may be apart, each is in one piece. */
static const Py_buffer *view_batch(Views *views, PyObject *array, Batch *batch) {
  Py_buffer *v = views->views;
  if (PyObject_GetBuffer(array, v, PyBUF_STRIDES | PyBUF_FORMAT)) return NULL;
  views->used = 1;
  batch->x = v->buf, batch->n = v->ndim ? v->shape[0] : 0, batch->single = !strcmp(v->format, "f");
  if (v->ndim < 2 || (!batch->single && strcmp(v->format, "d"))) {
    PyErr_SetString(PyExc_ValueError, "sweep: needs a batch of float tensors");
    return NULL;
  }
  long stride = v->itemsize;
  for (int k = v->ndim - 1; k > 0; stride *= v->shape[k--])
    if (v->strides[k] != stride && v->shape[k] > 1) {
      PyErr_SetString(PyExc_ValueError, "sweep: each sample must be contiguous");
      return NULL;
    }
  batch->step = v->strides[0] / v->itemsize, batch->size = stride / v->itemsize;
  return v;
}

static int read_plan(PyObject *args, Views *views, Plan *plan, void **outs, Batch *batch) {
  PyObject *tensors, *factors, *core, *center, *scale, *out, *scores = Py_None, *total = Py_None;
  if (!PyArg_ParseTuple(args, "OO!OOOpO|OO", &tensors, &PyTuple_Type, &factors, &core, &center, &scale, &plan->partials, &out,
                        &scores, &total))
    return 0;
  const Py_buffer *v = view_batch(views, tensors, batch);
  if (!v) return 0;
  const char *format = batch->single ? "f" : "d";
  plan->order = v->ndim - 1, plan->out = outs;
  plan->n = batch->n, plan->step = batch->step, plan->size = batch->size;
  if (plan->order < 2 || plan->order > MAX_ORDER || PyTuple_Size(factors) != plan->order) {
    PyErr_SetString(PyExc_ValueError, "sweep: needs tensors of order 2 to 16 and a factor per mode");
    return 0;
  }
  long ranks = 1, entries;
  for (int k = 0; k < plan->order; k++) {
    Mode *m = plan->modes + k;
    PyObject *u = PyTuple_GetItem(factors, k);
    Py_buffer *vu = views->views + views->used;
    m->p = v->shape[k + 1];
    if (PyObject_GetBuffer(u, vu, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return 0;
    views->used++;
    if (vu->ndim != 2 || vu->shape[0] != m->p || strcmp(vu->format, format)) {
      PyErr_Format(PyExc_ValueError, "sweep: factor %d must be a matrix with %ld rows of the type of the batch", k + 1, m->p);
      return 0;
    }
    m->r = vu->shape[1], m->u = vu->buf, m->left = ranks, ranks *= m->r;
  }
  long first[MAX_ORDER + 1] = {0}; /* entries before each part of what is made */
  entries = ranks;
  for (long k = plan->order - 1, right = 1; k >= 0; right *= plan->modes[k--].r) plan->modes[k].right = right;
  for (int k = 0; plan->partials && k < plan->order; k++) {
    const Mode *m = plan->modes + k;
    first[k + 1] = entries, entries += m->p * (core != Py_None ? m->r : m->left * m->right);
  }
  char *made;
  if (!(made = view(views, out, format, entries * plan->n, 1)) ||
      !view_optional(views, core, format, ranks, &plan->core) ||
      !view_optional(views, center, format, plan->size, &plan->center) ||
      !view_optional(views, scale, format, plan->n, &plan->scale) ||
      !view_optional(views, scores, format, plan->n, &plan->scores) ||
      (plan->scores && !(plan->total = view(views, total, format, plan->size, 1))))
    return 0;
  if (!ranks) memset(made, 0, (size_t)(entries * plan->n * v->itemsize)); /* of no columns nothing is put there */
  for (int k = 0; k <= plan->order; k++) outs[k] = made + first[k] * plan->n * v->itemsize;
  return 1;
}

static PyObject *ended(Views *views, int ok) {
  while (views->used) PyBuffer_Release(views->views + --views->used);
  if (!ok) return NULL;
  Py_RETURN_NONE;
}

static PyObject *sweep(PyObject *self, PyObject *args) {
  (void)self;
  Views views = {.used = 0};
  void *out[MAX_ORDER + 1], *shift[MAX_ORDER + 1], *memory = NULL;
  Plan plan = {0};
  Batch batch;
  int ok = read_plan(args, &views, &plan, out, &batch);
  plan.shift = plan.center ? shift : NULL;
  if (ok && !(memory = plan_memory(&plan, batch.x, batch.single ? sizeof(float) : sizeof(double)))) ok = 0, PyErr_NoMemory();
  if (ok) {
    Py_BEGIN_ALLOW_THREADS isa.sweeps[batch.single](&plan, batch.x);
    Py_END_ALLOW_THREADS
  }
  free(memory);
  return ended(&views, ok);
}

static PyObject *squares(PyObject *self, PyObject *args) {
  (void)self;
  Views views = {.used = 0};
  PyObject *tensors, *center, *sums;
  const void *middle;
  void *out = NULL;
  Batch batch;
  int ok = PyArg_ParseTuple(args, "OOO", &tensors, &center, &sums) && view_batch(&views, tensors, &batch);
  const char *format = ok && batch.single ? "f" : "d";
  ok = ok && view_optional(&views, center, format, batch.size, &middle) &&
       (out = view(&views, sums, format, batch.n, 1));
  if (ok) {
    Py_BEGIN_ALLOW_THREADS isa.squares[batch.single](&batch, middle, out);
    Py_END_ALLOW_THREADS
  }
  return ended(&views, ok);
}

static PyMethodDef methods[] = {
    {"sweep", sweep, METH_VARARGS,
     "sweep(tensors, factors, core, center, scale, partials, out, scores=None, total=None): fill out, entries x samples, "
     "one part after the other; with scores, add the sum of each tensor times its own to total."},
    {"squares", squares, METH_VARARGS,
     "squares(tensors, center, sums): fill sums with those of the squares of each sample's entries."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_sweep", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__sweep(void) {
  choose_isa();
  PyObject *m = PyModule_Create(&module);
  if (m && PyModule_AddStringConstant(m, "instructions", isa.name)) Py_CLEAR(m);
  return m;
}
